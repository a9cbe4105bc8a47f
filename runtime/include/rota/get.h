#pragma once

#include <rota/ref.h>

#include <iterator>
#include <ranges>
#include <tuple>
#include <vector>

namespace rota {

namespace detail {

template <class R>
concept ref_range = std::ranges::input_range<R> && is_ref<std::remove_cvref_t<std::ranges::range_reference_t<R>>>;

template <ref_range R>
using range_value = typename std::remove_cvref_t<std::ranges::range_reference_t<R>>::value_type;

// The refs themselves where they lie in a container; copies where the range makes or picks them as it goes: they must
// be the same at each look and outlive the wait.
template <ref_range R>
decltype(auto) held(R& refs) {
  if constexpr (std::ranges::random_access_range<R> && std::is_lvalue_reference_v<std::ranges::range_reference_t<R>>) {
    return (refs);
  } else {
    std::vector<ref<range_value<R>>> copies;
    for (auto&& r : refs) copies.push_back(std::forward<decltype(r)>(r));
    return copies;
  }
}

// REQUIRES: `refs` is what held() gave.
template <class R>
std::vector<object*> objects_of(R& refs) {
  std::vector<object*> objects;
  for (const auto& r : refs) {
    if (!r) throw_empty_ref();
    objects.push_back(r.handle().get());
  }
  return objects;
}

template <ref_range R>
auto get_all(R& range, deadline until) {
  auto&& refs = held(range);
  std::vector<object*> objects = objects_of(refs);
  await_all(objects, until);
  if constexpr (std::is_void_v<range_value<R>>) {
    for (const auto& r : refs) r.get();
  } else {
    std::vector<range_value<R>> values;
    values.reserve(objects.size());
    for (const auto& r : refs) values.push_back(r.get());
    return values;
  }
}

}  // namespace detail

template <class T>
T get(const ref<T>& r) {
  return r.get();
}
template <class T, class Rep, class Period>
T get(const ref<T>& r, std::chrono::duration<Rep, Period> limit) {
  return r.get(limit);
}

// The values in order (nothing for refs to void). Waits for all of them; then throws the first failure in order. The
// range may be a view that makes its refs as it goes, such as a transform: it is walked once.
template <detail::ref_range R>
auto get(R&& refs) {
  return detail::get_all(refs, std::nullopt);
}
template <detail::ref_range R, class Rep, class Period>
auto get(R&& refs, std::chrono::duration<Rep, Period> limit) {
  return detail::get_all(refs, detail::deadline_in(limit));
}

struct wait_options {
  std::size_t count = 1;                                               // 1 to the number of refs
  std::chrono::nanoseconds timeout = std::chrono::nanoseconds::max();  // max: none; 0: look once
};

template <class T>
struct wait_result {
  std::vector<ref<T>> ready;    // at most `count`, in the order given
  std::vector<ref<T>> pending;  // the others, in the order given
};

// Waits until `count` of the refs are ready (a failed one is) or the time is over. Throws config_error for count 0,
// count above the size, an empty ref or a ref given twice.
template <detail::ref_range R>
auto wait(R&& range, wait_options how = {}) {
  auto&& refs = detail::held(range);
  std::vector<detail::object*> objects = detail::objects_of(refs);
  std::vector<bool> ready = detail::await_some(objects, how.count, detail::deadline_in(how.timeout));
  wait_result<detail::range_value<R>> result;
  std::size_t i = 0;
  for (const auto& r : refs) {
    bool take = ready[i++] && result.ready.size() < how.count;
    (take ? result.ready : result.pending).push_back(r);
  }
  return result;
}

// What as_completed gives: to be walked once, by one thread. A ref that was handed out is not kept.
template <class T>
class completions {
 public:
  explicit completions(std::vector<ref<T>> refs) : refs_(std::move(refs)), order_(detail::objects_of(refs_)) {}

  class iterator {
   public:
    using value_type = ref<T>;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    iterator() = default;
    explicit iterator(completions* from) : from_(from) {}
    ref<T> operator*() const { return from_->refs_[from_->at_]; }
    iterator& operator++() {
      from_->step();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& it, std::default_sentinel_t) { return it.done(); }

   private:
    bool done() const { return from_->at_ == from_->refs_.size(); }
    completions* from_ = nullptr;
  };

  iterator begin() {
    if (at_ == not_begun) step();
    return iterator(this);
  }
  std::default_sentinel_t end() const { return {}; }

 private:
  static constexpr std::size_t not_begun = static_cast<std::size_t>(-1);

  void step() {
    if (at_ < refs_.size()) refs_[at_] = {};
    at_ = order_.empty() ? refs_.size() : order_.next();
  }

  std::vector<ref<T>> refs_;
  detail::completion_order order_;  // of refs_
  std::size_t at_ = not_begun;
};

// The refs in the order in which they become ready: for (ref<T> r : as_completed(refs)). Those found ready together
// come in the order given. Throws config_error for an empty ref or a ref given twice.
template <detail::ref_range R>
auto as_completed(R&& range) {
  using T = detail::range_value<R>;
  std::vector<ref<T>> refs;
  for (auto&& r : range) refs.push_back(std::forward<decltype(r)>(r));
  return completions<T>(std::move(refs));
}

}  // namespace rota
