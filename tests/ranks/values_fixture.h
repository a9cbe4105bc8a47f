#pragma once

#include <rota/ref.h>

// Calls of functions named `here`, as values_test.cpp has one too.
namespace rota::tests {

ref<int> here_of_other_file(int x);
ref<int> here_of_library(int x);

}  // namespace rota::tests
