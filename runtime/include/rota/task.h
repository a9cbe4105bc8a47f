#pragma once

#include <rota/detail/frame.h>
#include <rota/detail/submit.h>
#include <rota/get.h>
#include <rota/options.h>
#include <rota/ref.h>

#include <algorithm>
#include <concepts>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

namespace rota {

namespace detail {

template <class P>
constexpr void check_parameter_type() {
  static_assert(!std::is_rvalue_reference_v<P>,
                "rota: parameters are taken by value or const reference: the arguments belong to the task");
  static_assert(!std::is_lvalue_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>,
                "rota: a parameter by non-const reference would change a copy that nobody sees: take it by value or "
                "const reference, and return what changed");
  if constexpr (!std::is_reference_v<P> || std::is_const_v<std::remove_reference_t<P>>) {
    static_assert(check_value_type<std::remove_cvref_t<P>>());
  }
}

template <class R>
constexpr void check_result_type() {
  static_assert(!std::is_reference_v<R>,
                "rota: a result by reference would point into another process: return a value");
  if constexpr (!std::is_void_v<R> && !std::is_reference_v<R>) static_assert(check_value_type<stored_t<R>>());
}

// One argument: a value, converted to the parameter's type, or a ref of exactly that type.
template <class D, class A>
void add_argument(arguments& to, A&& given) {
  if constexpr (std::is_same_v<std::remove_cvref_t<A>, ref<D>>) {
    if (!given) throw_empty_ref();
    to.add_dependency(given.handle());
  } else if constexpr (std::is_same_v<std::remove_cvref_t<A>, D>) {
    to.add_value(static_cast<const D&>(given));
  } else if constexpr (std::is_convertible_v<A&&, D>) {
    const D converted = std::forward<A>(given);
    to.add_value(converted);
  } else {
    static_assert(dependent_false<A>,
                  "rota: an argument is a value that converts to the parameter's type, or a rota::ref of exactly that "
                  "type");
  }
}

template <class... P>
struct parameters {
  static constexpr std::size_t count = sizeof...(P);
  template <class... A>
  static void collect(arguments& args, A&&... given) {
    static_assert(sizeof...(A) == sizeof...(P),
                  "rota: the number of arguments is not that of the parameters; default arguments do not travel");
    static_assert(sizeof...(P) <= 64, "rota: at most 64 parameters");
    if constexpr (sizeof...(A) == sizeof...(P))
      (add_argument<std::remove_cvref_t<P>>(args, std::forward<A>(given)), ...);
  }
};

template <class F>
struct signature;
template <class R, class... P>
struct signature<R (*)(P...)> {
  using result = R;
  using params = parameters<P...>;
  static constexpr bool check() {
    (check_parameter_type<P>(), ...);
    check_result_type<R>();
    return true;
  }
  template <auto F>
  static void run(call_frame& frame) {
    std::tuple<std::remove_cvref_t<P>...> args{frame.take<std::remove_cvref_t<P>>()...};
    auto invoke = [](auto&... a) -> R {
      return F(std::forward<std::conditional_t<std::is_reference_v<P>, P, P&&>>(a)...);
    };
    if constexpr (std::is_void_v<R>) {
      std::apply(invoke, args);
    } else {
      frame.give(std::apply(invoke, args));
    }
  }
};
template <class R, class... P>
struct signature<R (*)(P...) noexcept> : signature<R (*)(P...)> {};

// A function pointer as it is; a captureless lambda as the function pointer it converts to.
template <auto F>
constexpr auto as_function() {
  if constexpr (std::is_pointer_v<decltype(F)>) {
    return F;
  } else if constexpr (std::is_class_v<decltype(F)>) {
    static_assert(
        requires { +F; }, "rota: a lambda with captures cannot travel: give what it captures as arguments");
    return +F;
  } else {
    static_assert(dependent_false<decltype(F)>, "rota: remote<f> takes a function or a lambda without captures");
  }
}

template <auto F>
struct task_code {
  using sig = signature<decltype(as_function<F>())>;
  static void run(call_frame& frame) { sig::template run<F>(frame); }
  static const char* pretty() { return __PRETTY_FUNCTION__; }  // a function, for only there it names the template
  static inline registration entry{&run, pretty()};
};

template <auto F>
using result_ref = ref<typename stored<typename task_code<F>::sig::result>::type>;

}  // namespace detail

// The callable behind remote<f>: makes a task of a call.
template <auto F>
class remote_function {
  static_assert(std::is_pointer_v<decltype(F)> || std::is_class_v<decltype(F)>,
                "rota: remote<f> takes a function or a lambda without captures");

 public:
  // Submits f(args...) and returns at once. Any thread, from tasks and actors too. Throws config_error for bad options,
  // empty refs, or outside a session.
  template <class... A>
  auto operator()(A&&... args) const {
    using code = detail::task_code<F>;
    using result_ref = detail::result_ref<F>;
    static_assert(code::sig::check());
    detail::arguments collected;
    code::sig::params::collect(collected, std::forward<A>(args)...);
    return result_ref(detail::submit(code::entry, collected, options_.get()));
  }

  // The same callable with options.
  remote_function with(options o) const {
    remote_function changed;
    changed.options_ = std::make_shared<const options>(std::move(o));
    return changed;
  }

  constexpr remote_function() = default;

 private:
  std::shared_ptr<const options> options_;
};

// remote<f>(args...) -> ref<R>: runs f(args...) as a task somewhere in the cluster.
template <auto F>
inline const remote_function<F> remote{};

struct map_options {
  std::size_t chunk = 256;  // tasks that are handed over to the scheduler at a time, at most 4096
};

// One task f(element) for each element of the range, submitted in bulk; the refs in the order of the range.
template <auto F, std::ranges::input_range R>
auto map(R&& range, map_options how = {}) {
  using code = detail::task_code<F>;
  static_assert(code::sig::check());
  using result_ref = detail::result_ref<F>;
  if (how.chunk == 0) detail::throw_config("map: a chunk has at least one element");
  std::vector<result_ref> results;
  if constexpr (std::ranges::sized_range<R>) results.reserve(std::ranges::size(range));
  how.chunk = std::min(how.chunk, std::size_t{4096});
  std::vector<detail::arguments> args(how.chunk);
  std::vector<detail::handle> handles(how.chunk);
  std::size_t filled = 0;
  auto hand_over = [&] {
    detail::submit_all(code::entry, {args.data(), filled}, handles.data());
    for (std::size_t i = 0; i < filled; ++i) {
      results.emplace_back(std::move(handles[i]));
      args[i].clear();
    }
    filled = 0;
  };
  for (auto&& element : range) {
    code::sig::params::collect(args[filled], std::forward<decltype(element)>(element));
    if (++filled == how.chunk) hand_over();
  }
  if (filled > 0) hand_over();
  return results;
}

// The task that this thread runs.
struct task_info {
  std::uint64_t id = 0;
  std::string_view name;  // lies with the task: copy it to keep it beyond the task's end
  unsigned attempt = 0;   // from 0
  unsigned rank = 0;
  unsigned node = 0;
  std::vector<unsigned> gpus{};

  // True once the session is ending and the task should return early.
  bool cancelled() const;
};

// Throws config_error outside a task or an actor's method.
task_info this_task();

namespace detail {

template <class Tuple, std::size_t I>
std::tuple_element_t<I, Tuple> pick(const Tuple& whole) {
  return std::get<I>(whole);
}

template <class Tuple, std::size_t... I>
auto unpack(const ref<Tuple>& whole, std::index_sequence<I...>) {
  return std::tuple<ref<std::tuple_element_t<I, Tuple>>...>(
      remote<&pick<Tuple, I>>.with({.where = near(whole)})(whole)...);
}

}  // namespace detail

// A ref to each element of a tuple; a failure of the tuple is a failure of each.
template <class... T>
std::tuple<ref<T>...> unpack(const ref<std::tuple<T...>>& whole) {
  return detail::unpack(whole, std::index_sequence_for<T...>{});
}

}  // namespace rota
