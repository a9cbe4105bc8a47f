// Compiled by ./run, which wants for each line with "refused:" that its first error has the words behind it, and no
// error at any other line. Each has types of its own: the compiler complains of a type once.
#include <rota/rota.h>

#include <array>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

template <int>
struct stuck {
  std::string name;
  std::thread worker;
};
struct point {
  double x, y;
};
struct counter {
  counter(int, std::string);
  int value() const;
  void set(short& x);
  void move_in(std::vector<int>&& list);
  int* raw();
};
struct taker {
  explicit taker(const stuck<6>&);
};

int good(int x);
int good_const(const std::string& text, point p, const rota::array<double>& a);
void by_reference(int& x);
void by_other_reference(long& x);
void by_rvalue(std::string&& text);
void by_pointer(const double* values, int n);
void by_c_string(const char* text);
void by_span(std::span<const int> values);
void by_view(std::string_view text);
void by_view_reference(const std::u16string_view& text);
void unserializable(stuck<1> s);
void in_vector(std::vector<stuck<2>> all);
void callback(std::function<void()> f);
void vector_of_pointers(std::vector<char16_t*> all);
void pointer_in_pair(std::pair<int, const char32_t*> p);
void pointer_in_tuple(std::tuple<int, std::string, point*> t);
void pointer_in_optional(std::optional<unsigned*> maybe);
void pointer_in_variant(std::variant<int, float*> either);
void pointer_in_map(const std::map<std::string, std::vector<long*>>& names);
void pointer_in_array(std::array<short*, 3> three);
void view_in_vector(std::vector<std::wstring_view> all);
void stuck_in_pointer(std::unique_ptr<stuck<7>> owned);
void stuck_in_map(std::map<int, std::shared_ptr<std::optional<stuck<8>>>> all);
void holds_all(std::map<int, std::pair<std::optional<std::string>, std::variant<int, std::unique_ptr<point>>>> all,
               std::tuple<std::vector<std::shared_ptr<std::string>>, rota::ref<int>> rest);
int& returns_reference();
const float* returns_pointer();
std::span<double> returns_span();
stuck<4> returns_stuck();

void all(rota::ref<int> number, rota::ref<long> other, rota::actor_handle<counter> handle, int local) {
  rota::remote<good>(1);
  rota::remote<good>(number);
  rota::remote<good_const>("text", point{1, 2}, rota::make_array<double>(3));
  handle.call<&counter::value>();
  rota::remote<holds_all>(
      std::map<int, std::pair<std::optional<std::string>, std::variant<int, std::unique_ptr<point>>>>(),
      std::tuple<std::vector<std::shared_ptr<std::string>>, rota::ref<int>>());
  rota::actor<counter>(1, "name");
  rota::remote<by_reference>(local);                 // refused: by non-const reference
  rota::map<by_other_reference>(std::vector{1L});    // refused: by non-const reference
  rota::remote<by_rvalue>(std::string());            // refused: by value or const reference
  rota::remote<by_pointer>(nullptr, 1);              // refused: a pointer means nothing in another process
  rota::remote<by_c_string>("text");                 // refused: a pointer means nothing in another process
  rota::remote<by_span>(std::vector<int>{});         // refused: take a rota::array<T> or a std::string instead
  rota::remote<by_view>("text");                     // refused: take a rota::array<T> or a std::string instead
  rota::remote<by_view_reference>(u"text");          // refused: take a rota::array<T> or a std::string instead
  rota::remote<unserializable>(stuck<1>{});          // refused: this type cannot travel between ranks
  rota::remote<in_vector>(std::vector<stuck<2>>());  // refused: this type cannot travel between ranks
  rota::remote<callback>([] {});                     // refused: this type cannot travel between ranks
  rota::remote<vector_of_pointers>(1);               // refused: a pointer means nothing in another process
  rota::remote<pointer_in_pair>(1);                  // refused: a pointer means nothing in another process
  rota::remote<pointer_in_tuple>(1);                 // refused: a pointer means nothing in another process
  rota::remote<pointer_in_optional>(1);              // refused: a pointer means nothing in another process
  rota::remote<pointer_in_variant>(1);               // refused: a pointer means nothing in another process
  rota::remote<pointer_in_map>(1);                   // refused: a pointer means nothing in another process
  rota::remote<pointer_in_array>(1);                 // refused: a pointer means nothing in another process
  rota::remote<view_in_vector>(1);                   // refused: take a rota::array<T> or a std::string instead
  rota::remote<stuck_in_pointer>(1);                 // refused: this type cannot travel between ranks
  rota::remote<stuck_in_map>(1);                     // refused: this type cannot travel between ranks
  rota::remote<returns_reference>();                 // refused: return a value
  rota::remote<returns_pointer>();                   // refused: a pointer means nothing in another process
  rota::remote<returns_span>();                      // refused: take a rota::array<T> or a std::string instead
  rota::remote<returns_stuck>();                     // refused: this type cannot travel between ranks
  rota::remote<good>();                              // refused: the number of arguments is not that of the parameters
  rota::remote<good>(1, 2);                          // refused: the number of arguments is not that of the parameters
  rota::remote<good>("text");                        // refused: an argument is a value that converts
  rota::remote<good>(other);                         // refused: a rota::ref of exactly that type
  rota::remote<&counter::value>();                   // refused: takes a function
  rota::put(stuck<5>{});                             // refused: this type cannot travel between ranks
  rota::put(&handle);                                // refused: a pointer means nothing in another process
  rota::map<good>(std::vector<std::string>{"a"});    // refused: an argument is a value that converts
  handle.call<&counter::set>(local);                 // refused: by non-const reference
  handle.call<&counter::move_in>(std::vector{1});    // refused: by value or const reference
  handle.call<&counter::raw>();                      // refused: a pointer means nothing in another process
  handle.call<&counter::value>(1);                   // refused: the number of arguments is not that of the parameters
  rota::actor<counter>(1);                           // refused: has no constructor for these arguments
  rota::actor<taker>(stuck<6>{});                    // refused: this type cannot travel between ranks
}
