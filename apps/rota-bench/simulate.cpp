// The scheduler alone.

#include "apps/rota-bench/bench.h"

namespace bench {

void run_simulate(const context&) { expect(false, "simulate", "the simulator is not built yet"); }

}  // namespace bench
