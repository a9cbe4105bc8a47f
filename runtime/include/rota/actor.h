#pragma once

#include <rota/task.h>

#include <memory>
#include <optional>
#include <string>
#include <typeinfo>

namespace rota {

namespace detail {

template <class M>
struct method_signature;

template <class C, class R, class... P>
struct method_base {
  using result = R;
  using params = parameters<P...>;
  static constexpr bool check() {
    (check_parameter_type<P>(), ...);
    check_result_type<R>();
    return true;
  }
  template <class Actor, auto M>
  static void run(call_frame& frame) {
    std::tuple<std::remove_cvref_t<P>...> args{frame.take<std::remove_cvref_t<P>>()...};
    auto& self = *static_cast<Actor*>(frame.instance);
    auto invoke = [&](auto&... a) -> R {
      return (self.*M)(std::forward<std::conditional_t<std::is_reference_v<P>, P, P&&>>(a)...);
    };
    if constexpr (std::is_void_v<R>) {
      std::apply(invoke, args);
    } else {
      frame.give(std::apply(invoke, args));
    }
  }
};

template <class C, class R, class... P>
struct method_signature<R (C::*)(P...)> : method_base<C, R, P...> {};
template <class C, class R, class... P>
struct method_signature<R (C::*)(P...) const> : method_base<C, R, P...> {};
template <class C, class R, class... P>
struct method_signature<R (C::*)(P...)&> : method_base<C, R, P...> {};
template <class C, class R, class... P>
struct method_signature<R (C::*)(P...) const&> : method_base<C, R, P...> {};
template <class C, class R, class... P>
struct method_signature<R (C::*)(P...) noexcept> : method_base<C, R, P...> {};
template <class C, class R, class... P>
struct method_signature<R (C::*)(P...) const noexcept> : method_base<C, R, P...> {};
template <class C, class R, class... P>
struct method_signature<R (C::*)(P...)& noexcept> : method_base<C, R, P...> {};
template <class C, class R, class... P>
struct method_signature<R (C::*)(P...) const& noexcept> : method_base<C, R, P...> {};

template <class C, auto M>
struct method_code {
  using sig = method_signature<decltype(M)>;
  static void run(call_frame& frame) { sig::template run<C, M>(frame); }
  static const char* pretty() { return __PRETTY_FUNCTION__; }  // a function, for only there it names the template
  static inline registration entry{&run, pretty()};
};

template <class T>
struct travel {
  using type = std::decay_t<T>;
};
template <>
struct travel<const char*> {
  using type = std::string;
};
template <>
struct travel<char*> {
  using type = std::string;
};
template <class A>
using travel_t = typename travel<std::decay_t<A>>::type;

template <class T>
struct resolved {
  using type = T;
};
template <class T>
requires(!std::is_void_v<T>) struct resolved<ref<T>> {
  using type = T;
};

template <class... T>
struct type_list {};

// What C is constructed from when it is given arguments of types A: `types`, and `value` says whether it can be at all.
// A ref is kept where that leaves a constructor, from the first argument on, and resolved otherwise.
template <class C, class Chosen, class... A>
struct constructor_choice;
template <class C, class... D>
struct constructor_choice<C, type_list<D...>> : std::is_constructible<C, D...> {
  using types = type_list<D...>;
};
template <class C, class... D, class A, class... Rest>
struct constructor_choice<C, type_list<D...>, A, Rest...>
    : std::disjunction<constructor_choice<C, type_list<D..., A>, Rest...>,
                       constructor_choice<C, type_list<D..., typename resolved<A>::type>, Rest...>> {};

template <class C, class... D>
struct constructor_code {
  static void run(call_frame& frame) {
    std::tuple<D...> args{frame.take<D>()...};
    frame.instance = std::apply([](auto&... a) { return new C(std::move(a)...); }, args);
    frame.destroy = [](void* instance) { delete static_cast<C*>(instance); };
  }
  static const char* pretty() { return __PRETTY_FUNCTION__; }  // a function, for only there it names the template
  static inline registration entry{&run, pretty()};
};

}  // namespace detail

// Names an actor of class C. Copyable and serializable; the actor ends when the last handle goes.
template <class C>
class actor_handle {
 public:
  // Names no actor; calls throw config_error.
  actor_handle() = default;

  // Calls the method with copies of the arguments; returns at once. Calls of one thread through handles of one rank run
  // in the order in which they were made, one at a time.
  template <auto M, class... A>
  auto call(A&&... args) const {
    using code = detail::method_code<C, M>;
    static_assert(code::sig::check());
    if (!handle_) detail::throw_config("call: this actor_handle names no actor");
    using result = typename detail::stored<typename code::sig::result>::type;
    detail::arguments collected;
    code::sig::params::collect(collected, std::forward<A>(args)...);
    return ref<result>(detail::call_actor(handle_, code::entry, collected, options_.get()));
  }

  // The same handle with options for its calls. Their name is what this_task() and errors call the call. It takes no
  // slot and waits for nothing but its turn: the other options are checked as those of a task are, and change nothing.
  actor_handle with(options o) const {
    actor_handle changed = *this;
    changed.options_ = std::make_shared<const options>(std::move(o));
    return changed;
  }

  // Ends the actor now, after the call that runs; calls that wait or come later throw actor_died.
  void kill() const {
    if (!handle_) detail::throw_config("kill: this actor_handle names no actor");
    detail::kill_actor(handle_);
  }

  std::uint64_t id() const noexcept { return handle_ ? detail::id_of(handle_.get()) : 0; }
  explicit operator bool() const noexcept { return static_cast<bool>(handle_); }

  // For the library.
  explicit actor_handle(detail::handle h) noexcept : handle_(std::move(h)) {}
  const detail::handle& handle() const noexcept { return handle_; }

 private:
  detail::handle handle_;
  std::shared_ptr<const options> options_;
};

template <class C>
void CEREAL_SAVE_FUNCTION_NAME(detail::output_archive& to, const actor_handle<C>& value) {
  to(static_cast<bool>(value));
  if (value) to.bytes().add_ref(value.handle().get());
}
template <class C>
void CEREAL_LOAD_FUNCTION_NAME(detail::input_archive& from, actor_handle<C>& value) {
  bool filled = false;
  from(filled);
  value = filled ? actor_handle<C>(from.bytes().next_ref()) : actor_handle<C>();
}

// The callable behind actor<C>: makes an actor of a call. Arguments travel as their own decayed types, literals as
// std::string; a ref is resolved unless C can be constructed from the ref itself, each for itself.
template <class C>
class actor_maker {
 public:
  actor_maker() = default;
  explicit actor_maker(actor_options o) : options_(std::move(o)) {}

  // Makes the actor somewhere in the cluster and returns at once. A constructor that throws shows in the calls. Throws
  // config_error for a name that is taken and for bad options.
  template <class... A>
  actor_handle<C> operator()(A&&... args) const {
    static_assert(std::is_class_v<C>, "rota: an actor is an object of a class");
    using choice = detail::constructor_choice<C, detail::type_list<>, detail::travel_t<A>...>;
    static_assert(choice::value, "rota: the actor's class has no constructor for these arguments");
    return make(typename choice::types(), std::forward<A>(args)...);
  }

  actor_maker with(actor_options o) const { return actor_maker(std::move(o)); }

 private:
  template <class... D, class... A>
  actor_handle<C> make(detail::type_list<D...>, A&&... args) const {
    static_assert((detail::check_value_type<D>() && ...));
    using code = detail::constructor_code<C, D...>;
    detail::arguments collected;
    detail::parameters<D...>::collect(collected, std::forward<A>(args)...);
    return actor_handle<C>(detail::create_actor(code::entry, typeid(C).name(), collected, options_));
  }

  actor_options options_;
};

// actor<C>(args...) -> actor_handle<C>: an object of class C, constructed from the arguments, that lives on some rank.
template <class C>
inline const actor_maker<C> actor{};

// handle.call<M>(args...) for templates, where the member call would need the word template.
template <auto M, class C, class... A>
auto call(const actor_handle<C>& handle, A&&... args) {
  return handle.template call<M>(std::forward<A>(args)...);
}

// The actor of that name; nullopt where there is none. Throws config_error where it is of another class.
template <class C>
std::optional<actor_handle<C>> find_actor(const std::string& name) {
  detail::handle found = detail::find_actor(name, typeid(C).name());
  if (!found) return std::nullopt;
  return actor_handle<C>(std::move(found));
}

}  // namespace rota
