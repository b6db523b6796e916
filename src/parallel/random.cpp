#include "nqf/parallel/random.hpp"

#include <Random123/philox.h>
#include <Random123/boxmuller.hpp>
#include <Random123/uniform.hpp>

#include <algorithm>

namespace nqf::parallel {

namespace {
// Each use of the generator counts in a family of its own.
enum Family : std::uint64_t { single = 0, table = 1, raw = 2 };

r123::Philox4x64::ctr_type draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t index, std::uint64_t step,
                                Family family = single) {
  r123::Philox4x64 philox;
  const r123::Philox4x64::ukey_type key = {{seed, stream}};
  const r123::Philox4x64::ctr_type counter = {{index, step, family, 0}};
  return philox(counter, key);
}
}  // namespace

double RandomStream::uniform(std::uint64_t index, std::uint64_t step) const {
  return r123::u01<double>(draw(seed_, stream_, index, step)[0]);
}

double RandomStream::normal(std::uint64_t index, std::uint64_t step) const {
  const auto bits = draw(seed_, stream_, index, step);
  return r123::boxmuller(bits[0], bits[1]).x;
}

void RandomStream::fill_normal(std::uint64_t index, std::span<double> out) const {
  for (std::size_t k = 0; k < out.size(); k += 4) {
    const auto random = draw(seed_, stream_, index, k / 4, table);
    const auto a = r123::boxmuller(random[0], random[1]), b = r123::boxmuller(random[2], random[3]);
    const double four[4] = {a.x, a.y, b.x, b.y};
    std::copy_n(four, std::min<std::size_t>(4, out.size() - k), out.data() + k);
  }
}

std::uint64_t RandomStream::bits(std::uint64_t index, std::uint64_t step) const {
  return draw(seed_, stream_, index, step, raw)[0];
}

}  // namespace nqf::parallel
