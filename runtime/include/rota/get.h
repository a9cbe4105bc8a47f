#pragma once

#include <rota/ref.h>

#include <iterator>
#include <ranges>
#include <tuple>
#include <vector>

namespace rota {

namespace detail {

inline deadline in(std::chrono::nanoseconds limit) {
  return std::chrono::steady_clock::now() + std::chrono::ceil<std::chrono::steady_clock::duration>(limit);
}

template <class R>
concept ref_range = std::ranges::forward_range<R> && is_ref<std::remove_cvref_t<std::ranges::range_reference_t<R>>>;

template <ref_range R>
std::vector<object*> objects_of(const R& refs) {
  std::vector<object*> objects;
  for (const auto& r : refs) {
    if (!r) throw_empty_ref();
    objects.push_back(r.handle().get());
  }
  return objects;
}

template <ref_range R>
auto get_all(const R& refs, deadline until) {
  using T = typename std::remove_cvref_t<std::ranges::range_reference_t<R>>::value_type;
  std::vector<object*> objects = objects_of(refs);
  await_all(objects, until);
  if constexpr (std::is_void_v<T>) {
    for (const auto& r : refs) r.get();
  } else {
    std::vector<T> values;
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
template <class T>
T get(const ref<T>& r, std::chrono::nanoseconds limit) {
  return r.get(limit);
}

// The values in order (nothing for refs to void). Waits for all of them; then throws the first failure in order.
template <detail::ref_range R>
auto get(const R& refs) {
  return detail::get_all(refs, std::nullopt);
}
template <detail::ref_range R>
auto get(const R& refs, std::chrono::nanoseconds limit) {
  return detail::get_all(refs, detail::in(limit));
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
auto wait(const R& refs, wait_options how = {}) {
  using T = typename std::remove_cvref_t<std::ranges::range_reference_t<R>>::value_type;
  std::vector<detail::object*> objects = detail::objects_of(refs);
  detail::deadline until;
  if (how.timeout != std::chrono::nanoseconds::max()) until = detail::in(how.timeout);
  std::vector<bool> ready = detail::await_some(objects, how.count, until);
  wait_result<T> result;
  std::size_t i = 0;
  for (const auto& r : refs) {
    bool take = ready[i++] && result.ready.size() < how.count;
    (take ? result.ready : result.pending).push_back(r);
  }
  return result;
}

// The refs in the order in which they become ready: for (ref<T> r : as_completed(refs)).
template <class T>
class completions {
 public:
  explicit completions(std::vector<ref<T>> refs) : pending_(std::move(refs)) {}

  class iterator {
   public:
    using value_type = ref<T>;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::input_iterator_tag;
    iterator() = default;
    explicit iterator(completions* from) : from_(from) {}
    ref<T> operator*() const { return from_->ready_[from_->next_]; }
    iterator& operator++() {
      ++from_->next_;
      from_->refill();
      return *this;
    }
    void operator++(int) { ++*this; }
    friend bool operator==(const iterator& it, std::default_sentinel_t) { return it.done(); }

   private:
    bool done() const { return from_->ended(); }
    completions* from_ = nullptr;
  };

  iterator begin() {
    refill();
    return iterator(this);
  }
  std::default_sentinel_t end() const { return {}; }

 private:
  bool ended() const { return next_ == ready_.size() && pending_.empty(); }
  void refill() {
    if (next_ < ready_.size() || pending_.empty()) return;
    // All that are ready now are taken at once: a long list is not looked through for each of them.
    auto first = wait(pending_, {.count = 1});
    auto more = wait(pending_, {.count = pending_.size(), .timeout = std::chrono::nanoseconds(0)});
    auto& taken = more.ready.empty() ? first : more;
    ready_ = std::move(taken.ready);
    pending_ = std::move(taken.pending);
    next_ = 0;
  }

  std::vector<ref<T>> pending_;
  std::vector<ref<T>> ready_;
  std::size_t next_ = 0;
};

template <detail::ref_range R>
auto as_completed(const R& refs) {
  using T = typename std::remove_cvref_t<std::ranges::range_reference_t<R>>::value_type;
  return completions<T>(std::vector<ref<T>>(std::ranges::begin(refs), std::ranges::end(refs)));
}

}  // namespace rota
