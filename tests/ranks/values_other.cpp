#include <rota/rota.h>

#include "tests/ranks/values_fixture.h"

static int here(int x) { return x + 2000; }

rota::ref<int> rota::tests::here_of_other_file(int x) { return rota::remote<here>(x); }
