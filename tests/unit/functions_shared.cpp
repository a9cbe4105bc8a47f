#include "tests/unit/functions_fixture.h"

static int twin(int x) { return 3 * x; }

static const rota::detail::registration* twin_lambda() {
  return &functions_test::registered<[](int x) { return x - 3; }>::entry;
}

namespace functions_test {

std::vector<const rota::detail::registration*> functions_of_shared_library() {
  return {&registered<&twin>::entry, twin_lambda(), &registered<[](int x) { return x + 3; }>::entry};
}

}  // namespace functions_test
