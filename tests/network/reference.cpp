#include "reference.hpp"

#include "nqf/data/hdf5_reader.hpp"
#include "nqf/data/shape.hpp"
#include "nqf/network/loss.hpp"

namespace nqf::test {

std::vector<double> read_whole(const std::string& file, const std::string& dataset) {
  const auto shape = data::dataset_shape(world(), {file, dataset});
  return data::read_rows(world(), {file, dataset}, parallel::Partition(shape.at(0), 0, 1));
}

const std::vector<std::string>& reference_modules() {
  static const std::vector<std::string> names{
      "perceptron",     "convolution", "attention", "query_key", "experts_softmax_linear", "experts_sigmoid_linear",
      "experts_softmax"};
  return names;
}

ReferenceProblem::ReferenceProblem(const std::string& name)
    : file(std::string(NQF_TEST_DATA) + "/module_" + name + ".h5") {
  using enum deck::ModuleKind;
  for (const auto& [text, kind] : {std::pair{"perceptron", perceptron},
                                   {"convolution", convolution},
                                   {"attention", attention},
                                   {"query_key", query_key},
                                   {"experts_softmax_linear", experts_softmax_linear},
                                   {"experts_sigmoid_linear", experts_sigmoid_linear},
                                   {"experts_softmax", experts_softmax}})
    if (name == text) batch.options.kind = kind;
  x = read_whole(file, "x");
  y = read_whole(file, "y");
  auto input = data::dataset_shape(world(), {file, "x"});
  const auto w_shape = data::dataset_shape(world(), {file, "W0"});
  batch.name = name;
  batch.size = input[0];
  batch.shape = {.input = {input.begin() + 1, input.end()},
                 .n_outputs = data::dataset_shape(world(), {file, "y"})[1],
                 .width = w_shape[1]};
  batch.options.head_size = 2;
  batch.options.score_scale = 1.0;
  if (batch.options.kind == query_key) batch.options.readout.value = read_whole(file, "rho");
  const auto rows = read_whole(file, "W0");
  w0.resize(rows.size());
  for (std::int64_t a = 0; a < w_shape[0]; ++a)
    for (std::int64_t i = 0; i < w_shape[1]; ++i) w0[i * w_shape[0] + a] = rows[a * w_shape[1] + i];
}

FullBatch::FullBatch(const ReferenceProblem& problem, network::Layer& layer)
    : problem_(problem), layer_(layer), outputs_(problem.y.size()) {}

const std::vector<double>& FullBatch::outputs(const std::vector<double>& w) {
  layer_.forward(problem_.batch.size, problem_.x, w, outputs_);
  return outputs_;
}

double FullBatch::loss(const std::vector<double>& w) {
  return network::loss(deck::LossKind::squared, problem_.batch.shape.n_outputs, outputs(w), problem_.y, {}, {});
}

double FullBatch::gradient(const std::vector<double>& w, std::vector<double>& gradient) {
  outputs(w);
  const double value =
      network::loss(deck::LossKind::squared, problem_.batch.shape.n_outputs, outputs_, problem_.y, {}, outputs_);
  std::fill(gradient.begin(), gradient.end(), 0.0);
  layer_.backward(problem_.batch.size, problem_.x, w, outputs_, gradient, {});
  return value;
}

}  // namespace nqf::test
