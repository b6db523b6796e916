#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "example_gated_tanh.hpp"
#include "example_softmax_experts.hpp"
#include "module_of.hpp"
#include "nqf/network/custom_module.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::network {
namespace {

const std::vector<const CustomModule*>& registry() {
  // One line a module.
  static const ModuleOf<GatedTanh> gated_tanh;
  static const ModuleOf<SoftmaxExperts> softmax_experts;
  static const std::vector<const CustomModule*> modules{&gated_tanh, &softmax_experts};
  return modules;
}

}  // namespace

std::vector<std::string> custom_module_names() {
  std::vector<std::string> names;
  for (const auto* module : registry()) names.push_back(module->name());
  return names;
}

const CustomModule& custom_module(const std::string& name) {
  for (const auto* module : registry())
    if (module->name() == name) return *module;
  throw UserError(fmt::format("no custom module '{}'; there are: {} (src/network/custom/registry.cpp)", name,
                              fmt::join(custom_module_names(), ", ")));
}

}  // namespace nqf::network
