// Started beside another executable, in whose session it may not take part.
#include <rota/rota.h>

#include <cstdio>

int minus_one(int x) { return x - 1; }

int main(int argc, char** argv) {
  try {
    auto session = rota::init(argc, argv);
    return rota::remote<minus_one>(1).get();
  } catch (const rota::join_refused& e) {
    std::fprintf(stderr, "join_refused: %s\n", e.what());
    return 2;
  }
}
