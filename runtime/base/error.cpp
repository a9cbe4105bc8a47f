#include <cxxabi.h>
#include <rota/error.h>

#include <any>
#include <array>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <functional>
#include <future>
#include <ios>
#include <memory>
#include <new>
#include <optional>
#include <regex>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <typeinfo>
#include <variant>

#include "runtime/base/thrown.h"

namespace rota {

void task_error::rethrow() const {
  const auto kind = static_cast<detail::thrown_kind>(kind_);
  if (!detail::is_standard(kind)) throw *this;
  detail::rethrow_as(kind, original_);
}

}  // namespace rota

namespace rota::detail {
namespace {

// What a standard exception that takes no message is built from.
template <class Exception>
Exception blank() {
  if constexpr (std::is_same_v<Exception, std::system_error>) {
    return Exception(std::error_code{});
  } else if constexpr (std::is_same_v<Exception, std::filesystem::filesystem_error>) {
    return Exception(std::string{}, std::error_code{});
  } else if constexpr (std::is_same_v<Exception, std::ios_base::failure>) {
    return Exception(std::string{}, std::error_code{});
  } else if constexpr (std::is_same_v<Exception, std::future_error>) {
    return Exception(std::future_errc{});
  } else if constexpr (std::is_same_v<Exception, std::regex_error>) {
    return Exception(std::regex_constants::error_type{});
  } else {
    return Exception();
  }
}

// A standard exception that makes its own message, with the message it had elsewhere.
template <class Exception>
class relayed final : public Exception {
 public:
  explicit relayed(const std::string& message) : Exception(blank<Exception>()), message_(message) {}
  const char* what() const noexcept override { return message_.what(); }

 private:
  std::runtime_error message_;  // copies without throwing, as an exception must
};

template <class Exception>
bool is(const std::exception& caught) noexcept {
  if constexpr (std::is_same_v<Exception, std::exception>) return true;
  return dynamic_cast<const Exception*>(std::addressof(caught)) != nullptr;
}

template <class Exception>
[[noreturn]] void raise(const std::string& message) {
  if constexpr (std::is_constructible_v<Exception, const std::string&> &&
                !std::is_base_of_v<std::system_error, Exception>) {
    throw Exception(message);
  } else {
    throw relayed<Exception>(message);
  }
}

struct known_type {
  thrown_kind kind;
  std::string_view name;
  bool (*matches)(const std::exception&) noexcept;
  void (*raise)(const std::string&);
};

template <class Exception>
constexpr known_type entry(thrown_kind kind, std::string_view name) {
  return {kind, name, &is<Exception>, &raise<Exception>};
}

// Derived types before their bases: the first match counts.
constexpr std::array known_types = {
    known_type{thrown_kind::task_error, "rota::task_error", &is<rota::task_error>, &raise<rota::error>},
    entry<rota::task_cancelled>(thrown_kind::task_cancelled, "rota::task_cancelled"),
    entry<rota::task_timeout>(thrown_kind::task_timeout, "rota::task_timeout"),
    entry<rota::get_timeout>(thrown_kind::get_timeout, "rota::get_timeout"),
    entry<rota::actor_died>(thrown_kind::actor_died, "rota::actor_died"),
    entry<rota::actor_unavailable>(thrown_kind::actor_unavailable, "rota::actor_unavailable"),
    entry<rota::rank_lost>(thrown_kind::rank_lost, "rota::rank_lost"),
    entry<rota::object_lost>(thrown_kind::object_lost, "rota::object_lost"),
    entry<rota::out_of_memory>(thrown_kind::out_of_memory, "rota::out_of_memory"),
    entry<rota::infeasible>(thrown_kind::infeasible, "rota::infeasible"),
    entry<rota::would_block>(thrown_kind::would_block, "rota::would_block"),
    entry<rota::config_error>(thrown_kind::config_error, "rota::config_error"),
    entry<rota::join_refused>(thrown_kind::join_refused, "rota::join_refused"),
    entry<rota::error>(thrown_kind::rota_error, "rota::error"),
    entry<std::out_of_range>(thrown_kind::out_of_range, "std::out_of_range"),
    entry<std::invalid_argument>(thrown_kind::invalid_argument, "std::invalid_argument"),
    entry<std::domain_error>(thrown_kind::domain_error, "std::domain_error"),
    entry<std::length_error>(thrown_kind::length_error, "std::length_error"),
    entry<std::future_error>(thrown_kind::future_error, "std::future_error"),
    entry<std::logic_error>(thrown_kind::logic_error, "std::logic_error"),
    entry<std::range_error>(thrown_kind::range_error, "std::range_error"),
    entry<std::overflow_error>(thrown_kind::overflow_error, "std::overflow_error"),
    entry<std::underflow_error>(thrown_kind::underflow_error, "std::underflow_error"),
    entry<std::regex_error>(thrown_kind::regex_error, "std::regex_error"),
    entry<std::ios_base::failure>(thrown_kind::ios_failure, "std::ios_base::failure"),
    entry<std::filesystem::filesystem_error>(thrown_kind::filesystem_error, "std::filesystem::filesystem_error"),
    entry<std::system_error>(thrown_kind::system_error, "std::system_error"),
    entry<std::runtime_error>(thrown_kind::runtime_error, "std::runtime_error"),
    entry<std::bad_array_new_length>(thrown_kind::bad_array_new_length, "std::bad_array_new_length"),
    entry<std::bad_alloc>(thrown_kind::bad_alloc, "std::bad_alloc"),
    entry<std::bad_any_cast>(thrown_kind::bad_any_cast, "std::bad_any_cast"),
    entry<std::bad_cast>(thrown_kind::bad_cast, "std::bad_cast"),
    entry<std::bad_typeid>(thrown_kind::bad_typeid, "std::bad_typeid"),
    entry<std::bad_exception>(thrown_kind::bad_exception, "std::bad_exception"),
    entry<std::bad_function_call>(thrown_kind::bad_function_call, "std::bad_function_call"),
    entry<std::bad_optional_access>(thrown_kind::bad_optional_access, "std::bad_optional_access"),
    entry<std::bad_variant_access>(thrown_kind::bad_variant_access, "std::bad_variant_access"),
    entry<std::bad_weak_ptr>(thrown_kind::bad_weak_ptr, "std::bad_weak_ptr"),
    entry<std::exception>(thrown_kind::exception, "std::exception"),
};
static_assert(known_types.size() + 1 == static_cast<std::size_t>(thrown_kind::count));  // all but `other`

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// As a user would write it: without the compiler's name for the string type and its ABI tags.
std::string readable(const std::type_info& type) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> demangled(
      abi::__cxa_demangle(type.name(), nullptr, nullptr, &status), &std::free);
  std::string name = demangled ? demangled.get() : type.name();
  replace_all(name, "__cxx11::", "");
  replace_all(name, "[abi:cxx11]", "");
  replace_all(name, "std::basic_string<char, std::char_traits<char>, std::allocator<char> >", "std::string");
  return name;
}

// A user's class keeps its own name and no kind: throwing its standard base instead would not be the original type.
void describe(const std::exception& caught, thrown& out) {
  if (const char* text = caught.what()) out.message = text;
  const bool relayed_here = out.type_name.starts_with("rota::detail::");
  if (!relayed_here && !out.type_name.starts_with("std::") && !out.type_name.starts_with("rota::")) return;
  for (const known_type& type : known_types) {
    if (!type.matches(caught)) continue;
    out.kind = type.kind;
    if (relayed_here || out.type_name.starts_with("std::__")) out.type_name = type.name;
    return;
  }
}

}  // namespace

bool is_standard(thrown_kind kind) noexcept { return kind > thrown_kind::other && kind < thrown_kind::rota_error; }

thrown describe_current_exception() {
  thrown out;
  out.message = "(no message)";
  const std::type_info* type = abi::__cxa_current_exception_type();
  out.type_name = type != nullptr ? readable(*type) : "an exception of another language";
  try {
    throw;
  } catch (const std::exception& caught) {
    describe(caught, out);
  } catch (const std::string& text) {
    out.message = text;
  } catch (const char* text) {
    out.message = text != nullptr ? text : "(null)";
  } catch (int number) {
    out.message = std::to_string(number);
  } catch (unsigned number) {
    out.message = std::to_string(number);
  } catch (long number) {
    out.message = std::to_string(number);
  } catch (double number) {
    out.message = std::to_string(number);
  } catch (const abi::__forced_unwind&) {
    throw;
  } catch (...) {  // NOLINT(bugprone-empty-catch): nothing more can be said about it
  }
  return out;
}

void rethrow_as(thrown_kind kind, const std::string& message) {
  for (const known_type& type : known_types) {
    if (type.kind == kind) type.raise(message);
  }
  throw rota::error(message);
}

}  // namespace rota::detail
