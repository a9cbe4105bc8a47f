#include "runtime/client/joining.h"

#include <fmt/format.h>
#include <mpi.h>
#include <rota/error.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

#include "mpi/hang_guard.h"
#include "runtime/base/control_groups.h"
#include "runtime/client/settings.h"
#include "runtime/worker/cores.h"
#include "slurm/environment.h"

namespace rota::detail {
namespace {

// What one rank tells all others.
struct offer {
  std::string error;
  std::string digest;
  std::uint64_t inline_bytes = 0;
  std::uint64_t store_bytes = 0;
  std::int64_t suspect_ns = 0, lost_ns = 0;
  wire::resources offered;
  rank_cores cores;
};

std::string encode(const offer& o) {
  base::buffer b;
  base::put_text(b, o.error);
  base::put_text(b, o.digest);
  b.put(o.inline_bytes);
  b.put(o.store_bytes);
  b.put(o.suspect_ns);
  b.put(o.lost_ns);
  wire::put_resources(b, o.offered);
  b.put(o.cores.slots);
  b.put(o.cores.bound);
  b.put(static_cast<std::uint32_t>(o.cores.allowed.size()));
  for (unsigned core : o.cores.allowed) b.put(core);
  return {reinterpret_cast<const char*>(b.data()), b.size()};
}

offer decode(const std::string& text) {
  base::cursor from({reinterpret_cast<const std::byte*>(text.data()), text.size()});
  offer o;
  o.error = base::get_text(from);
  o.digest = base::get_text(from);
  o.inline_bytes = from.get<std::uint64_t>();
  o.store_bytes = from.get<std::uint64_t>();
  o.suspect_ns = from.get<std::int64_t>();
  o.lost_ns = from.get<std::int64_t>();
  o.offered = wire::get_resources(from);
  o.cores.slots = from.get<unsigned>();
  o.cores.bound = from.get<bool>();
  o.cores.allowed.resize(from.get<std::uint32_t>());
  for (unsigned& core : o.cores.allowed) core = from.get<unsigned>();
  return o;
}

// Memory and cores, as this rank finds them.
start_facts look_around(const mpi::world& world, const std::vector<unsigned>& allowed) {
  start_facts f;
  f.rank = world.rank();
  f.host = world.facts(f.rank).host;
  for (const mpi::rank_facts& one : world.facts()) f.nodes.push_back(one.node);
  f.cores = allowed.size();
  f.cpu_quota = base::cpu_quota(base::files_under({}));
  f.memory = base::read_memory_bounds();
  f.memory.job = slurm::read_environment().memory_on_node();
  struct statvfs shm {};
  if (statvfs("/dev/shm", &shm) == 0) {
    f.shm_total = std::size_t{shm.f_blocks} * shm.f_frsize;
    f.shm_free = std::size_t{shm.f_bavail} * shm.f_frsize;
  }
  return f;
}

slot_choice slots_of(const mpi::world& world, const config& c, const std::vector<unsigned>& allowed,
                     const std::optional<double>& quota) {
  if (world.rank() == 0 && c.head_slots >= 0) return {static_cast<unsigned>(c.head_slots), "--rota-head-slots"};
  if (world.rank() == 0 && world.size() > 1) return {0, "the head, which offers none under a launcher"};
  return offered_slots(c, slurm::read_environment(), allowed, quota);
}

store_choice store_of(const mpi::world& world, const config& c, const start_facts& f) {
  if (c.store) return {c.store, "--rota-store"};
  // A rank that is alone maps memory of its own.
  return chosen_store(f.memory, world.size() == 1 ? std::nullopt : f.shm_free);
}

wire::resources resources_of(const mpi::world& world, const config& c, unsigned slots, std::size_t node_memory) {
  wire::resources r;
  r.cpus = std::int64_t{slots} * wire::resources::unit;
  if (slots > 0 && c.cpus > 0 && c.cpus < slots) r.cpus = wire::to_units(c.cpus).value_or(0);
  if (slots == 0) return r;
  std::map<std::string, std::int64_t> others;
  const std::size_t memory = c.memory ? c.memory : node_memory / std::max<std::size_t>(1, world.node_ranks().size());
  others["memory"] = static_cast<std::int64_t>(std::min<std::size_t>(memory, INT64_MAX));
  // Settings that were refused come here too.
  for (const auto& [name, amount] : c.resources) others[name] = wire::to_units(amount).value_or(0);
  r.others.assign(others.begin(), others.end());
  return r;
}

std::string sharing_warning(const mpi::world& world, const core_plan& plan, const std::vector<rank_cores>& ranks) {
  if (plan.shared.empty()) return {};
  std::string pairs;
  for (auto [a, b] : plan.shared) pairs += fmt::format("{}{} and {}", pairs.empty() ? "" : ", ", a, b);
  return fmt::format(
      "ranks {} ({}) are bound to the same cores and keep each other waiting: give each rank its own "
      "(mpirun --bind-to core or --map-by slot:PE=n, srun --cpus-per-task=n)",
      pairs, world.facts(ranks.front().rank).host);
}

offer make_offer(const mpi::world& world, const joining_result& mine, start_facts& facts) {
  offer o;
  o.error = mine.error;
  o.digest = function_table::build().digest(wire::version);
  o.cores.rank = world.rank();
  o.cores.host = world.facts(world.rank()).host;
  o.cores.allowed = allowed_cores();
  o.cores.bound = o.cores.allowed.size() < host_cores();
  facts = look_around(world, o.cores.allowed);
  const slot_choice slots = slots_of(world, mine.values, o.cores.allowed, facts.cpu_quota);
  o.cores.slots = slots.slots;
  o.offered = resources_of(world, mine.values, slots.slots, facts.memory.limit().bytes);
  o.inline_bytes = mine.values.inline_bytes;
  o.suspect_ns = mine.values.suspect_after.count();
  o.lost_ns = mine.values.lost_after.count();
  const store_choice store = store_of(world, mine.values, facts);
  o.store_bytes = std::max(store.bytes, store_granule) / store_granule * store_granule;
  facts.slots = slots.slots;
  facts.slots_from = slots.from;
  facts.store_from = store.from;
  facts.settings = mine.shown;
  return o;
}

void refuse(const mpi::world& world, const std::vector<offer>& offers) {
  for (rank_t r = 0; r < offers.size(); ++r) {
    if (!offers[r].error.empty()) throw config_error(offers[r].error);
  }
  for (rank_t r = 1; r < offers.size(); ++r) {
    if (offers[r].digest == offers[0].digest) continue;
    throw join_refused(fmt::format(
        "rank {} ({}) runs another executable than rank 0 ({}): build ids or functions differ; start all ranks with "
        "one and the same file, and remove stale copies of it and of its libraries",
        r, world.facts(r).host, world.facts(0).host));
  }
}

}  // namespace

joining_result read_settings(int& argc, char**& argv, const config& base) {
  joining_result result;
  try {
    settings read = resolve(argc, argv, base);
    result.values = read.values;
    result.shown = read.shown;
    if (read.help) result.help = *read.help;
    const std::string& folder = result.values.spill_dir;
    if (!folder.empty() && result.values.spill_quota > 0 && access(folder.c_str(), W_OK | X_OK) != 0) {
      result.error = fmt::format("--rota-spill-dir: {} cannot be used: {}", folder, std::strerror(errno));
    }
  } catch (const config_error& e) {
    result.values = base;
    result.error = e.what();
  }
  return result;
}

join_plan agree(const mpi::world& world, joining_result mine) {
  if (!mine.help.empty()) {
    if (world.rank() == 0) std::fputs(mine.help.c_str(), stdout);
    std::fflush(stdout);
    finalize_quietly();
    std::exit(0);
  }
  join_plan plan;
  std::vector<offer> offers;
  for (const std::string& text : world.allgather(encode(make_offer(world, mine, plan.facts))))
    offers.push_back(decode(text));
  refuse(world, offers);

  std::vector<rank_cores> cores;
  unsigned busy_threads = 0;
  for (rank_t r = 0; r < offers.size(); ++r) {
    offers[r].cores.rank = r;
    offers[r].cores.host = world.facts(r).host;
    cores.push_back(offers[r].cores);
    plan.offers.push_back({world.facts(r).node, offers[r].offered, world.facts(r).host});
    plan.slots += static_cast<double>(offers[r].offered.cpus) / wire::resources::unit;
    if (world.facts(r).host == world.facts(world.rank()).host) busy_threads += std::max(1u, offers[r].cores.slots);
  }
  core_plan bound = plan_cores(cores);
  plan.warning = sharing_warning(world, bound, cores);
  plan.values = mine.values;
  plan.values.inline_bytes = offers[0].inline_bytes;  // some settings are rank 0's for all
  plan.values.suspect_after = std::chrono::nanoseconds(offers[0].suspect_ns);
  plan.values.lost_after = std::chrono::nanoseconds(offers[0].lost_ns);
  plan.store_bytes = plan.facts.store_bytes = offers[world.node_ranks().front()].store_bytes;
  plan.least_store = plan.most_store = plan.store_bytes;
  for (rank_t r = 0; r < offers.size(); ++r) {
    if (world.facts(r).node_rank != 0) continue;
    plan.least_store = std::min<std::size_t>(plan.least_store, offers[r].store_bytes);
    plan.most_store = std::max<std::size_t>(plan.most_store, offers[r].store_bytes);
  }
  plan.usable_bytes = plan.facts.memory.usable().bytes;
  rank_setup& s = plan.setup;
  s.rank = world.rank();
  s.world_size = world.size();
  s.node = world.node();
  s.host = world.facts(s.rank).host;
  s.offered = offers[s.rank].offered;
  s.slots = offers[s.rank].cores.slots;
  s.cores = bound.cores[s.rank];
  s.crowded = busy_threads > std::min(static_cast<double>(host_cores()), plan.facts.cpu_quota.value_or(HUGE_VAL));
  s.node_ranks = world.node_ranks();
  s.nodes = plan.facts.nodes;
  return plan;
}

void finalize_quietly() noexcept {
  int initialised = 0, finalised = 0;
  MPI_Initialized(&initialised);
  MPI_Finalized(&finalised);
  if (!initialised || finalised) return;
  const mpi::hang_guard guard(std::chrono::seconds(5), 2, {});
  MPI_Finalize();
}

}  // namespace rota::detail
