// Coupled modes as their initial values go to zero: times in units of ln(1/ε) tend to the saddle path of
// THEORY 4.6.
#include <gtest/gtest.h>

#include <numbers>

#include "support/coupled_run.hpp"

namespace nqf::solver {
namespace {

// z_k(0) = ε c_k, and the path from λ(0) = −1 for all modes. With t = τ ln(1/ε) + O(1) the distance
// |t/ln(1/ε) − τ| ln(1/ε) of every event tends to a constant of its own.
TEST(SmallInitialValues, DistanceFromThePathIsAConstantOverTheLogarithm) {
  auto system = test::reference_modes();
  const auto path = test::path_of(system, std::vector<double>(6, -1.0));
  ASSERT_EQ(path.events.size(), 7u);
  const double log_epsilon_of_file = -30.0 * std::numbers::ln10;
  std::vector<std::vector<double>> distances;
  for (const double log_inverse : {600.0, 6000.0, 60000.0}) {
    auto initial = system.log_initial;
    for (double& chi : initial) chi -= log_epsilon_of_file + log_inverse;  // ln c_k − ln(1/ε)
    const double end = 1.2 * path.events.back().time * log_inverse;
    deck::SolverOptions options;
    dynamics::LotkaVolterra flow(*system.interaction, options.dark_fraction * options.atol / end);
    CvodeEvolution evolution(flow, options, 0.0, initial);
    auto detector = test::detector_of(system, path);
    test::RecordingSink sink;
    Schedule schedule;
    schedule.output_times = {0.0, end};
    EXPECT_TRUE(test::run(evolution, detector, sink, schedule).complete);
    ASSERT_EQ(sink.all_events.size(), 7u);
    std::vector<double> distance;
    for (const auto& predicted : path.events) {
      const auto found = std::find_if(sink.all_events.begin(), sink.all_events.end(), [&](const Event& event) {
        return event.mode == predicted.mode && event.kind == predicted.kind;
      });
      ASSERT_NE(found, sink.all_events.end());
      distance.push_back(std::abs(found->time / log_inverse - predicted.time) * log_inverse);
    }
    distances.push_back(distance);
  }
  for (std::size_t i = 0; i < path.events.size(); ++i) {
    const auto [least, most] = std::minmax({distances[0][i], distances[1][i], distances[2][i]});
    EXPECT_LE(most, 1.3 * least) << "mode " << path.events[i].mode << ", kind " << path.events[i].kind;
  }
}

}  // namespace
}  // namespace nqf::solver
