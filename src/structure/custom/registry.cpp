// The modules of users: one line each.
#include "example_gated_tanh.hpp"
#include "example_refused.hpp"
#include "example_softmax_experts.hpp"
#include "example_tanh_perceptron.hpp"

// What looks them up.
#include <fmt/format.h>

#include <algorithm>

#include "nqf/deck/nearest.hpp"
#include "nqf/parallel/errors.hpp"
#include "nqf/structure/custom_module.hpp"
#include "registered.hpp"

namespace nqf::structure {
namespace {

// Made by the first call: the files above register before main() starts.
std::vector<std::unique_ptr<const CustomModule>>& custom_modules() {
  static std::vector<std::unique_ptr<const CustomModule>> modules;
  return modules;
}

}  // namespace

void add_custom_module(std::unique_ptr<const CustomModule> module) {
  custom_modules().push_back(std::move(module));
}

std::vector<std::string> custom_module_names() {
  std::vector<std::string> names;
  for (const auto& module : custom_modules()) names.push_back(module->name());
  return names;
}

const CustomModule& custom_module(const deck::ModuleOptions& options) {
  for (const auto& module : custom_modules())
    if (module->name() == options.name) return *module;
  const auto& place = options.name_place;
  const auto names = custom_module_names();
  if (options.name.empty())
    throw DeckError(place.file, place.line,
                    "[module] name: missing, but needed by kind = \"custom\"" + deck::suggestion("", names));
  throw DeckError(place.file, place.line,
                  fmt::format("[module] name: there is no custom module \"{}\" in src/structure/custom/registry.cpp{}",
                              options.name, deck::suggestion(options.name, names)));
}

}  // namespace nqf::structure
