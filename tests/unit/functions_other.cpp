#include "tests/unit/functions_fixture.h"

static int twin(int x) { return 2 * x; }

static const rota::detail::registration* twin_lambda() {
  return &functions_test::registered<[](int x) { return x - 2; }>::entry;
}

namespace functions_test {

std::vector<const rota::detail::registration*> functions_of_other_file() {
  return {&registered<&twin>::entry, twin_lambda(), &registered<[](int x) { return x + 2; }>::entry};
}

}  // namespace functions_test
