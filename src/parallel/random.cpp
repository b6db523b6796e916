#include "nqf/parallel/random.hpp"

#include <Random123/philox.h>
#include <Random123/boxmuller.hpp>
#include <Random123/uniform.hpp>

namespace nqf::parallel {

namespace {
r123::Philox4x64::ctr_type draw(std::uint64_t seed, std::uint64_t stream, std::uint64_t index, std::uint64_t step) {
  r123::Philox4x64 philox;
  const r123::Philox4x64::ukey_type key = {{seed, stream}};
  const r123::Philox4x64::ctr_type counter = {{index, step, 0, 0}};
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

}  // namespace nqf::parallel
