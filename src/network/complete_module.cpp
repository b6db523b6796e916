#include "nqf/data/array.hpp"
#include "nqf/data/hdf5_reader.hpp"
#include "nqf/network/make_layer.hpp"
#include "nqf/parallel/errors.hpp"

namespace nqf::network {
namespace {

void complete_query_key(const parallel::Comm& comm, const deck::Deck& deck, deck::ModuleOptions& options) {
  const auto& file = deck.data.file;
  options.readout = data::or_dataset(comm, options.readout, file, "rho");
  if (options.score_scale == 0.0 && !file.empty() && data::has_dataset(comm, file, "score_scale"))
    options.score_scale = data::read_scalar(comm, {file, "score_scale"});
}

void complete_fourier(const parallel::Comm& comm, const deck::Deck& deck, deck::ModuleOptions& options) {
  auto& amplitude = options.amplitude;
  if (!amplitude.given()) amplitude.value = 1.0;
  if (deck.data.kind != deck::DataKind::fourier || data::array_length(comm, amplitude)) return;
  std::int64_t length = deck.data.count > 0 ? deck.data.count : deck.data.samples - 1;
  if (const auto listed = data::array_length(comm, deck.data.coefficients)) length = *listed;
  if (length < 1)
    throw DeckError(options.place.file, options.place.line,
                    "[module] amplitude: the number of features is unknown; a list, or data.count, sets it");
  amplitude.value = data::load_replicated(comm, amplitude, length);
}

}  // namespace

deck::ModuleOptions complete_module(const parallel::Comm& comm, const deck::Deck& deck) {
  auto options = deck.module;
  if (options.kind == deck::ModuleKind::query_key) complete_query_key(comm, deck, options);
  if (options.kind == deck::ModuleKind::fourier) complete_fourier(comm, deck, options);
  return options;
}

}  // namespace nqf::network
