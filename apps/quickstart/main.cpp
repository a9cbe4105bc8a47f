#include <rota/rota.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <utility>
#include <vector>

int square(int x) { return x * x; }

double sum(const rota::array<double>& a) { return std::accumulate(a.begin(), a.end(), 0.0); }

struct Counter {
  int n = 0;
  void incr(int by) { n += by; }
  int value() const { return n; }
};

int main(int argc, char** argv) {
  auto session = rota::init(argc, argv);  // ranks other than 0 serve in here and never return

  std::vector<rota::ref<int>> squares;  // tasks
  for (int i = 0; i < 4; ++i) squares.push_back(rota::remote<square>(i));
  std::vector<int> values = rota::get(squares);  // {0, 1, 4, 9}

  auto counter = rota::actor<Counter>();  // actors: calls run in submission order
  for (int i = 0; i < 10; ++i) counter.call<&Counter::incr>(1);
  int ten = counter.call<&Counter::value>().get();

  auto matrix = rota::make_array<double>(1'000'000);  // objects: built in the store, never copied
  std::fill(matrix.begin(), matrix.end(), 1.0);
  rota::ref<rota::array<double>> ref = rota::put(std::move(matrix));
  double million = rota::remote<sum>(ref).get();  // a ref given for a value is a dependency

  std::printf("squares: %d %d %d %d\n", values[0], values[1], values[2], values[3]);
  std::printf("counter: %d, sum: %.0f\n", ten, million);
}
