#include "runtime/simulator/oracle.h"

#include <algorithm>

namespace rota::simulator {
namespace {

void fail_with(expectation& e, std::uint32_t kinds) {
  e.fails = true;
  e.kinds |= kinds;
}

// What a job of this spec results in. A line by line account of runner::step() without a cluster.
expectation expect_job(const shape& cluster, const job_spec& job, const std::vector<expected>& deps,
                       const std::vector<expected>& held) {
  expectation result;
  std::vector<expected> registers;
  std::uint64_t hash = mixed(job.seed);
  for (const expected& dep : deps) {
    result.kinds |= dep->kinds;
    result.fails |= dep->fails;
    hash = mixed(hash, dep->hash);
    registers.insert(registers.end(), dep->inside.begin(), dep->inside.end());
  }
  if (result.fails) return result;
  registers.insert(registers.end(), held.begin(), held.end());
  plan todo = make_plan(cluster, job);
  for (const step& s : todo.steps) {
    if (expected made = expect_step(cluster, s, registers)) registers.push_back(made);
    if (s.what != op::get) continue;
    const expected got = registers[s.reg];
    result.kinds |= got->kinds;
    if (got->fails) {
      fail_with(result, got->kinds);
      return result;
    }
    hash = mixed(hash, got->hash);
    registers.insert(registers.end(), got->inside.begin(), got->inside.end());
  }
  if (job.flags & throws) fail_with(result, bit(wire::failure_kind::task));
  result.hash = hash;
  for (std::uint8_t reg : todo.result) result.inside.push_back(registers[reg]);
  return result;
}

}  // namespace

std::uint64_t hash_of_put(std::uint64_t seed) { return mixed(seed, 0x707574); }

bool can_run(const shape& cluster, const step& s) {
  for (std::size_t r = 1; r < cluster.ranks.size(); ++r) {
    const rank_shape& rank = cluster.ranks[r];
    if (s.where == wire::where_kind::on_rank && s.target != r) continue;
    if (s.where == wire::where_kind::on_node && s.target != rank.node) continue;
    bool fits = s.needs_code != wire::explicit_needs ||
                (s.needs.cpus <= rank.slots * wire::resources::unit && s.needs.amount("lamp") <= rank.custom);
    if (fits) return true;
  }
  return false;
}

expected expect_step(const shape& cluster, const step& s, const std::vector<expected>& registers) {
  auto all = [&](const std::vector<std::uint8_t>& regs) {
    std::vector<expected> some;
    for (std::uint8_t reg : regs) some.push_back(registers[reg]);
    return some;
  };
  expectation made;
  switch (s.what) {
    case op::put:
      made.hash = hash_of_put(s.job.seed);
      made.inside = all(s.held);
      break;
    case op::submit:
    case op::create:
      if (can_run(cluster, s)) {
        made = expect_job(cluster, s.job, all(s.deps), all(s.held));
      } else {
        fail_with(made, bit(wire::failure_kind::infeasible));
      }
      if (s.what == op::create && made.kinds != 0) made.kinds |= bit(wire::failure_kind::actor_died);
      if (s.job.flags & mortal) made.kinds |= bit(wire::failure_kind::actor_died);
      break;
    case op::call: {
      const expected& actor = registers[s.reg];
      made = expect_job(cluster, s.job, all(s.deps), all(s.held));
      made.kinds |= actor->kinds;
      made.fails |= actor->fails;
      break;
    }
    default:
      return nullptr;
  }
  return std::make_shared<const expectation>(std::move(made));
}

}  // namespace rota::simulator
