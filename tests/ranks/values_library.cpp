#include <rota/rota.h>

#include "tests/ranks/values_fixture.h"

static int here(int x) { return x + 3000; }

rota::ref<int> rota::tests::here_of_library(int x) { return rota::remote<here>(x); }
