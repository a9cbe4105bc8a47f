// The program of the README, as somebody writes it who has only the installed package. Exits with 1 on a wrong value.
#include <rota/rota.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

int square(int x) { return x * x; }

double sum(const rota::array<double>& a) { return std::accumulate(a.begin(), a.end(), 0.0); }

struct Counter {
  int n = 0;
  void incr(int by) { n += by; }
  int value() const { return n; }
};

int main(int argc, char** argv) {
  auto session = rota::init(argc, argv);

  std::vector<rota::ref<int>> squares;
  for (int i = 0; i < 4; ++i) squares.push_back(rota::remote<square>(i));
  const std::vector<int> values = rota::get(squares);

  auto counter = rota::actor<Counter>();
  for (int i = 0; i < 10; ++i) counter.call<&Counter::incr>(1);
  const int ten = counter.call<&Counter::value>().get();

  auto matrix = rota::make_array<double>(1'000'000);
  std::fill(matrix.begin(), matrix.end(), 1.0);
  rota::ref<rota::array<double>> ref = rota::put(std::move(matrix));
  const double million = rota::remote<sum>(ref).get();

  std::printf("%d %d %d %d, %d, %.0f\n", values[0], values[1], values[2], values[3], ten, million);
  return values == std::vector<int>{0, 1, 4, 9} && ten == 10 && million == 1e6 ? 0 : 1;
}
