#pragma once

#include <utility>

namespace nqf::parallel {

/// Sole owner of one handle of a C library. Traits gives the raw type, its empty value and a noexcept free().
template <class Traits>
class Handle {
 public:
  using Raw = typename Traits::Raw;

  Handle() = default;
  explicit Handle(Raw raw) noexcept : raw_(raw) {}
  Handle(Handle&& other) noexcept : raw_(other.release()) {}
  Handle& operator=(Handle&& other) noexcept {
    reset(other.release());
    return *this;
  }
  ~Handle() { reset(); }

  Raw get() const noexcept { return raw_; }
  explicit operator bool() const noexcept { return raw_ != Traits::empty(); }
  /// For C calls that fill a handle in.
  Raw* out() noexcept {
    reset();
    return &raw_;
  }
  Raw release() noexcept { return std::exchange(raw_, Traits::empty()); }
  void reset(Raw next = Traits::empty()) noexcept {
    if (Raw old = std::exchange(raw_, next); old != Traits::empty()) Traits::free(old);
  }

 private:
  Raw raw_ = Traits::empty();
};

}  // namespace nqf::parallel
