// What can be an argument and a result, and what can be called.
#include <gtest/gtest.h>
#include <rota/rota.h>

#include <algorithm>
#include <complex>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "tests/ranks/values_fixture.h"

namespace {

using namespace std::chrono_literals;
using rota::ref;
using rota::remote;

struct point {
  double x = 0, y = 0;
  bool operator==(const point&) const = default;
};

struct person {
  std::string name{};
  int age = 0;
  std::map<std::string, std::vector<point>> tracks{};
  bool operator==(const person&) const = default;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, age, tracks);
  }
};

class owner {  // can be moved only
 public:
  owner() = default;
  explicit owner(int value) : value_(std::make_unique<int>(value)) {}
  int value() const { return value_ ? *value_ : -1; }
  template <class Archive>
  void serialize(Archive& archive) {
    archive(value_);
  }

 private:
  std::unique_ptr<int> value_;
};

class celsius {  // cannot be made from nothing
 public:
  explicit celsius(std::string degrees) : degrees_(std::move(degrees)) {}
  const std::string& degrees() const { return degrees_; }
  bool operator==(const celsius&) const = default;
  template <class Archive>
  void save(Archive& archive) const {
    archive(degrees_);
  }
  template <class Archive>
  static void load_and_construct(Archive& archive, cereal::construct<celsius>& construct) {
    std::string degrees;
    archive(degrees);
    construct(degrees);
  }

 private:
  std::string degrees_;
};

enum class colour : char { red, green };

template <class T>
T same(T value) {
  return value;
}

template <class T>
void travels(const T& value) {
  EXPECT_EQ(remote<same<T>>(value).get(), value);
  EXPECT_EQ(remote<same<T>>(rota::put(value)).get(), value);
}

TEST(values, trivially_copyable_types_travel) {
  travels(42);
  travels(true);
  travels('x');
  travels(1.5L);
  travels(colour::green);
  travels(point{1, 2});
  travels(std::array<point, 3>{{{1, 2}, {3, 4}, {5, 6}}});
}

TEST(values, standard_containers_travel) {
  using namespace std::string_literals;
  travels("with\0zero"s);
  travels(std::string());
  travels(std::vector<int>{});
  travels(std::vector<int>{1, 2, 3});
  travels(std::vector<bool>{true, false, true});
  travels(std::vector<std::string>{"a", "", "c"});
  travels(std::map<std::string, std::vector<int>>{{"a", {1}}, {"b", {}}});
  travels(std::unordered_map<int, std::string>{{1, "a"}});
  travels(std::set<std::string>{"x", "y"});
  travels(std::deque<int>{1, 2});
  travels(std::list<double>{1, 2});
  travels(std::optional<std::string>{});
  travels(std::optional<std::string>{"there"});
  travels(std::variant<int, std::string>{"text"});
  travels(std::tuple<int, std::string, double>{1, "b", 2.5});
  travels(std::pair<int, point>{1, {2, 3}});
  travels(std::chrono::nanoseconds(7));
  travels(std::complex<double>{1, 2});
}

TEST(values, containers_of_trivially_copyable_structs_travel) {
  travels(std::vector<point>{{1, 2}, {3, 4}});
  travels(std::vector<std::vector<point>>{{{1, 2}}, {}});
  travels(std::map<colour, point>{{colour::green, {1, 2}}});
  travels(std::optional<point>{point{1, 2}});
}

TEST(values, user_types_travel) {
  travels(person{"Ada", 36, {{"walk", {{1, 2}, {3, 4}}}}});
  travels(std::vector<person>{{"A", 1, {}}, {"B", 2, {}}});
  travels(celsius("21"));
}

int value_of(owner o) { return o.value(); }
int value_of_const(const owner& o) { return o.value(); }
owner make_owner(int value) { return owner(value); }
int through(std::unique_ptr<int> p) { return *p; }
std::shared_ptr<std::string> share(const std::string& text) { return std::make_shared<std::string>(text); }

TEST(values, move_only_types_travel) {
  EXPECT_EQ(remote<value_of>(owner(3)).get(), 3);
  EXPECT_EQ(remote<value_of_const>(owner(4)).get(), 4);
  EXPECT_EQ(remote<make_owner>(5).get().value(), 5);
  EXPECT_EQ(remote<value_of>(remote<make_owner>(6)).get(), 6);
  EXPECT_EQ(rota::put(owner(7)).get().value(), 7);
  EXPECT_EQ(remote<through>(std::make_unique<int>(8)).get(), 8);
  EXPECT_EQ(*remote<share>("nine").get(), "nine");
}

std::size_t length(const std::string& text) { return text.size(); }
double half(double x) { return x / 2; }
std::string repeat(std::string text, std::size_t times) {
  std::string all;
  for (; times > 0; --times) all += text;
  return all;
}
long long add_const(const long long a, const long long& b) { return a + b; }

TEST(values, arguments_are_converted_at_the_call) {
  EXPECT_EQ(remote<half>(3).get(), 1.5);
  EXPECT_EQ(remote<length>("four").get(), 4u);
  const char* text = "ab";
  EXPECT_EQ(remote<repeat>(text, 3).get(), "ababab");
  EXPECT_EQ(remote<add_const>('a', short{1}).get(), 'a' + 1);
  std::string lvalue = "kept";
  EXPECT_EQ(remote<length>(lvalue).get(), 4u);
  EXPECT_EQ(lvalue, "kept");
}

std::size_t size_of_bytes(const std::vector<char>& bytes, char expected) {
  return std::all_of(bytes.begin(), bytes.end(), [&](char b) { return b == expected; }) ? bytes.size() : 0;
}
std::vector<char> bytes_of(std::size_t size, char value) { return std::vector<char>(size, value); }

TEST(values, every_size_travels_as_argument_and_result) {
  for (const std::size_t size : {0u, 1u, 191u, 192u, 193u, 4087u, 4088u, 4089u, 4095u, 4096u, 4097u, 16383u, 16384u,
                                 65535u, 65536u, 65537u, 262144u, 1000000u, 5000000u}) {
    const std::vector<char> bytes(size, 'b');
    EXPECT_EQ(remote<size_of_bytes>(bytes, 'b').get(), size);
    EXPECT_EQ(remote<bytes_of>(size, 'r').get(), std::vector<char>(size, 'r'));
    EXPECT_EQ(remote<size_of_bytes>(remote<bytes_of>(size, 'p'), 'p').get(), size);
    EXPECT_EQ(rota::put(bytes).get(), bytes);
  }
}

std::size_t total(std::string a, std::vector<int> b, const std::string& c, double d, std::string e, int f, char g,
                  std::vector<std::string> h) {
  return a.size() + b.size() + c.size() + static_cast<std::size_t>(d) + e.size() + static_cast<std::size_t>(f + g) +
         h.size();
}

TEST(values, many_arguments_large_small_and_refs_mix) {
  const std::string large(100000, 'x');
  auto b = rota::put(std::vector<int>(50000));
  EXPECT_EQ(remote<total>(large, b, std::string("abc"), 2, remote<repeat>("ab", 10000), 5, '\1',
                          rota::put(std::vector<std::string>(7)))
                .get(),
            100000u + 50000 + 3 + 2 + 20000 + 5 + 1 + 7);
}

using block = std::array<char, 4000>;
template <class... T>
std::size_t bytes_in(T... parts) {  // each must be of one letter, the next in turn
  char letter = 'a';
  std::size_t sum = 0;
  auto add = [&](const auto& part) {
    const bool same = std::all_of(part.begin(), part.end(), [&](char c) { return c == letter; });
    sum += same ? part.size() : 1'000'000;
    ++letter;
  };
  (add(parts), ...);
  return sum;
}
template <std::size_t>
using block_at = block;
template <std::size_t>
using text_at = std::string;
template <template <std::size_t> class Part, std::size_t... I>
auto sum_up(std::index_sequence<I...>, auto make) {
  return remote<bytes_in<Part<I>...>>(make(static_cast<char>('a' + I))...).get();
}
class collector {
 public:
  explicit collector(std::array<block, 20> first) : size_(first.size() * first[0].size()) {}
  template <class... T>
  std::size_t add(T... parts) {
    return size_ += bytes_in(parts...);
  }

 private:
  std::size_t size_;
};
template <std::size_t... I>
auto add_up(const rota::actor_handle<collector>& to, std::index_sequence<I...>, auto make) {
  return to.call<&collector::add<block_at<I>...>>(make(static_cast<char>('a' + I))...).get();
}

TEST(values, many_arguments_that_are_just_small_enough_to_ride_along_arrive_whole) {
  const auto block_of = [](char letter) {
    block made;
    made.fill(letter);
    return made;
  };
  const auto text_of = [](char letter) { return std::string(4080, letter); };
  EXPECT_EQ(sum_up<block_at>(std::make_index_sequence<16>(), block_of), 16u * 4000);
  EXPECT_EQ(sum_up<block_at>(std::make_index_sequence<17>(), block_of), 17u * 4000);
  EXPECT_EQ(sum_up<block_at>(std::make_index_sequence<64>(), block_of), 64u * 4000);
  EXPECT_EQ(sum_up<text_at>(std::make_index_sequence<17>(), text_of), 17u * 4080);
  EXPECT_EQ(sum_up<text_at>(std::make_index_sequence<64>(), text_of), 64u * 4080);
  auto kept = rota::actor<collector>(std::array<block, 20>{});
  EXPECT_EQ(add_up(kept, std::make_index_sequence<40>(), block_of), 60u * 4000);
}

int read(ref<int> r) { return r.get(); }
int read_const(const ref<int>& r) { return r.get(); }
int sum_all(std::vector<ref<int>> refs) {
  std::vector<int> values = rota::get(refs);
  return std::accumulate(values.begin(), values.end(), 0);
}
int sum_map(const std::map<std::string, ref<int>>& refs) {
  int sum = 0;
  for (const auto& [name, r] : refs) sum += r.get();
  return sum;
}
bool is_empty(ref<int> r) { return !r; }
struct with_ref {
  std::string name;
  ref<int> value;
  template <class Archive>
  void serialize(Archive& archive) {
    archive(name, value);
  }
};
int read_inside(const with_ref& w) { return w.value.get(); }
int plus_one(int x) { return x + 1; }
ref<int> make_ref(int x) { return remote<plus_one>(x); }
with_ref make_with_ref(int x) { return {"made", remote<plus_one>(x)}; }

TEST(values, ref_parameters_and_containers_of_refs_are_given_unresolved) {
  auto one = remote<plus_one>(0);
  auto two = rota::put(2);
  EXPECT_EQ(remote<read>(one).get(), 1);
  EXPECT_EQ(remote<read_const>(two).get(), 2);
  EXPECT_EQ(remote<sum_all>(std::vector{one, two, one}).get(), 4);
  EXPECT_EQ(remote<sum_all>(std::vector<ref<int>>{}).get(), 0);
  EXPECT_EQ(remote<sum_map>(std::map<std::string, ref<int>>{{"a", one}, {"b", two}}).get(), 3);
  EXPECT_TRUE(remote<is_empty>(ref<int>()).get());
  EXPECT_EQ(remote<read_inside>(with_ref{"x", two}).get(), 2);
}

TEST(values, refs_travel_inside_results_and_objects) {
  EXPECT_EQ(remote<make_ref>(4).get().get(), 5);
  EXPECT_EQ(remote<make_with_ref>(6).get().value.get(), 7);
  EXPECT_EQ(remote<read>(remote<make_ref>(1)).get(), 2);  // a ref of a ref, resolved once
  EXPECT_EQ(remote<read_inside>(remote<make_with_ref>(2)).get(), 3);
  auto holder = rota::put(std::vector{rota::put(1), rota::put(2)});
  EXPECT_EQ(remote<sum_all>(holder).get(), 3);
  EXPECT_EQ(rota::get(holder.get()), (std::vector{1, 2}));
}

void nothing() {}
void fails_on_zero(int x) {
  if (x == 0) throw std::invalid_argument("zero");
}
bool after(ref<void> before) { return before.get(), true; }

TEST(values, void_results) {
  ref<void> done = remote<nothing>();
  done.get();
  EXPECT_TRUE(done.ready());
  EXPECT_TRUE(remote<after>(done).get());
  EXPECT_THROW(remote<fails_on_zero>(0).get(), rota::task_error);
  rota::get(std::vector{remote<nothing>(), remote<fails_on_zero>(1)});
  EXPECT_THROW(rota::get(std::vector{remote<nothing>(), remote<fails_on_zero>(0)}), rota::task_error);
}

std::tuple<int, std::string, std::vector<double>> three() { return {1, "two", {3}}; }
std::tuple<int, std::string> throws_two() { throw std::range_error("no tuple"); }

TEST(values, unpack_gives_a_ref_to_each_element) {
  auto [a, b, c] = rota::unpack(remote<three>());
  EXPECT_EQ(remote<plus_one>(a).get(), 2);
  EXPECT_EQ(b.get(), "two");
  EXPECT_EQ(c.get(), std::vector<double>{3});
  auto [x, y] = rota::unpack(remote<throws_two>());
  EXPECT_THROW(x.get(), rota::task_error);
  EXPECT_THROW(y.get(), rota::task_error);
}

int overloaded(int x) { return x; }
int overloaded(const std::string& text) { return static_cast<int>(text.size()) * 100; }
int quiet(int x) noexcept { return x + 10; }
static int here(int x) { return x + 1000; }
struct holder_of_static {
  static int twice(int x) { return 2 * x; }
};

TEST(functions, overloads_noexcept_static_members_and_lambdas) {
  EXPECT_EQ(remote<static_cast<int (*)(int)>(overloaded)>(1).get(), 1);
  EXPECT_EQ(remote<static_cast<int (*)(const std::string&)>(overloaded)>("ab").get(), 200);
  EXPECT_EQ(remote<quiet>(1).get(), 11);
  EXPECT_EQ(remote<&holder_of_static::twice>(4).get(), 8);
  EXPECT_EQ(remote<[](int x) { return x + 1; }>(1).get(), 2);
  EXPECT_EQ(remote<[](int x) { return x + 2; }>(1).get(), 3);
  EXPECT_EQ(remote<[](const std::string& a, int b) { return a + std::to_string(b); }>("n", 1).get(), "n1");
}

TEST(functions, one_name_in_two_files_and_in_a_shared_library) {
  EXPECT_EQ(remote<here>(1).get(), 1001);
  EXPECT_EQ(rota::tests::here_of_other_file(1).get(), 2001);
  EXPECT_EQ(rota::tests::here_of_library(1).get(), 3001);
}

TEST(functions, map_submits_one_task_an_element) {
  std::vector<int> expected(1000);
  std::iota(expected.begin(), expected.end(), 1);
  EXPECT_EQ(rota::get(rota::map<plus_one>(std::views::iota(0, 1000))), expected);
  EXPECT_EQ(rota::get(rota::map<plus_one>(std::views::iota(0, 1000), {.chunk = 1})), expected);
  EXPECT_EQ(rota::get(rota::map<plus_one>(std::views::iota(0, 1000), {.chunk = 7})), expected);
  EXPECT_EQ(rota::get(rota::map<plus_one>(std::views::iota(0, 1000), {.chunk = 5000})), expected);
  EXPECT_TRUE(rota::map<plus_one>(std::vector<int>{}).empty());
  EXPECT_THROW(rota::map<plus_one>(std::vector<int>{1}, {.chunk = 0}), rota::config_error);
}

TEST(functions, map_takes_values_to_convert_refs_and_large_elements) {
  EXPECT_EQ(rota::get(rota::map<length>(std::vector<const char*>{"a", "bcd"})), (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(rota::get(rota::map<plus_one>(rota::map<plus_one>(std::vector{1, 2, 3}))), (std::vector{3, 4, 5}));
  const std::vector<std::string> large(20, std::string(100000, 'y'));
  EXPECT_EQ(rota::get(rota::map<length>(large)), std::vector<std::size_t>(20, 100000));
  rota::get(rota::map<fails_on_zero>(std::vector{1, 2}));
  EXPECT_THROW(rota::get(rota::map<fails_on_zero>(std::vector{1, 0})), rota::task_error);
}

}  // namespace
