#pragma once

#include <memory>
#include <string>
#include <vector>

#include "batch.hpp"

namespace nqf::test {

/// Whole array of a file, on every rank.
std::vector<double> read_whole(const std::string& file, const std::string& dataset);

/// A module of tests/reference with its data and initial weights, trained full batch.
struct ReferenceProblem {
  std::string file;  ///< path
  Batch batch;
  std::vector<double> x, y;
  std::vector<double> w0;  ///< [p × d], column-major, whole

  explicit ReferenceProblem(const std::string& name);
  std::vector<double> expected(const std::string& dataset) const { return read_whole(file, "expected/" + dataset); }
};

/// Names of the modules of tests/reference.
const std::vector<std::string>& reference_modules();

/// Loss and gradient of a layer on the problem's samples, with work arrays.
class FullBatch {
 public:
  FullBatch(const ReferenceProblem& problem, network::Layer& layer);
  /// Sets `gradient` to ∂L/∂W. @return L
  double gradient(const std::vector<double>& w, std::vector<double>& gradient);
  double loss(const std::vector<double>& w);
  const std::vector<double>& outputs(const std::vector<double>& w);

 private:
  const ReferenceProblem& problem_;
  network::Layer& layer_;
  std::vector<double> outputs_;
};

}  // namespace nqf::test
