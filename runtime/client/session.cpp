// The life of a session: init, serve, the end.
#include <fmt/format.h>
#include <rota/detail/session_state.h>
#include <rota/error.h>
#include <rota/mpi.h>
#include <rota/session.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "mpi/hang_guard.h"
#include "mpi/process_watch.h"
#include "mpi/window.h"
#include "mpi/world.h"
#include "objectstore/board.h"
#include "objectstore/extents.h"
#include "objectstore/values.h"
#include "runtime/base/log.h"
#include "runtime/client/instance.h"
#include "runtime/client/joining.h"
#include "runtime/client/network.h"
#include "runtime/client/spill_folder.h"
#include "slurm/environment.h"

namespace rota {
namespace detail {
namespace {

// Everything of a running session. Never destroyed: refs, and threads of the program, may outlive it.
struct open_session {
  std::unique_ptr<mpi::world> world;
  std::unique_ptr<mpi::node_window> window;
  std::unique_ptr<process> rank;
  std::unique_ptr<mpi::process_watch> watch;
  config values;
  start_facts facts;
  pid_t pid = 0;
  bool owns_process = false;  // init(argc, argv): workers end here
  bool ended = false;
};
open_session* the_session = nullptr;

// In the head's notes: set before it ends the run, so that the others go without a word of their own. REQUIRES: the
// window is open.
std::atomic_ref<std::byte> run_ends(open_session& s) { return std::atomic_ref(s.window->notes(0)[0]); }
constexpr std::byte yes{1};

[[noreturn]] void leave_lost(open_session& s) {
  s.world->abandon();
  std::fflush(nullptr);
  _exit(1);
}

// A rank of this run is gone, or out of reach. Until lost ranks are survived, one rank says so and all end. Where the
// head has lost a rank of another node its program hears it first, as rank_lost, and the others go when it ends; else
// the head tells them at once. Where it is the head that is gone, one rank of each node speaks.
void on_death(open_session& s, rank_t dead, const std::string& how) {
  const mpi::rank_facts& who = s.world->facts(dead);
  const bool head = s.world->rank() == 0;
  if (head && s.rank->over()) return;  // one loss is told
  const bool beside_head = s.world->node() == s.world->facts(0).node;
  if (!head && beside_head && run_ends(s).load() == yes) leave_lost(s);
  const auto& beside = s.world->node_ranks();
  const rank_t voice = beside_head && beside.size() > 1 ? beside[1] : beside.front();
  if (head || dead != 0 || s.world->rank() == voice) {
    const rank_t self = s.world->rank();
    const std::string what = fmt::format("rank {} ({}, pid {}) is lost to rank {} ({}): {}", dead, who.host, who.pid,
                                         self, s.world->facts(self).host, how);
    base::log().error("{}; the run ends", what);
    if (head && who.node != s.world->facts(0).node) return s.rank->lose(what);
  }
  if (head) {
    run_ends(s).store(yes);
    s.rank->tell_run_ends();
  }
  leave_lost(s);
}

void start_watch(open_session& s) {
  if (s.world->size() == 1) return;
  s.watch = std::make_unique<mpi::process_watch>([&s](rank_t dead) { on_death(s, dead, "it was killed or crashed"); });
  for (rank_t r : s.world->node_ranks()) {
    // Workers watch the head, the head watches all: one voice tells of a loss.
    if (r != s.world->rank() && (s.world->rank() == 0 || r == 0)) s.watch->add(r, s.world->facts(r).pid);
  }
}

// How long ranks wait for each other when they leave: what is left of shutdown_timeout, and a second at least, for they
// do not come at the same moment even where no task has any time.
void leave_world(open_session& s, std::chrono::nanoseconds left) {
  const auto limit = std::max<std::chrono::nanoseconds>(left, std::chrono::seconds(1));
  s.world->meet(limit, [&s] { s.rank->drive_fabric(); });
  s.watch.reset();  // from here on ranks may go
  // Longer than finish() waits by itself, and than a late rank takes: only for what would have no end.
  constexpr std::chrono::nanoseconds longest = std::chrono::hours(24);
  const auto last = std::min(limit, longest) + std::chrono::seconds(10);
  const rank_t self = s.world->rank();
  const mpi::hang_guard guard(last, 1,
                              fmt::format("rank {} ({}) waited {:g} s in MPI's end for a rank that is gone", self,
                                          s.world->facts(self).host, std::chrono::duration<double>(last).count()));
  s.rank->disconnect(std::chrono::steady_clock::now() + limit);
  s.window->close();
  s.world->finish(limit);
}

// Rank 0, when it goes without the others: they go too.
void abandon(open_session& s) {
  if (s.window->is_open()) run_ends(s).store(yes);
  s.rank->tell_run_ends();
  s.watch.reset();
  s.rank->abandon();
  s.world->abandon();
}

std::string too_long(std::chrono::nanoseconds limit, const std::string& running) {
  return fmt::format("shutdown_timeout ({:g} s) is over and still running: {}; the run ends without it",
                     std::chrono::duration<double>(limit).count(), running);
}

void give_up(open_session& s, std::chrono::nanoseconds limit, const std::string& running) {
  base::log().error("{}", too_long(limit, running));
  abandon(s);
}

// Rank 0. `limit` bounds all of it.
void end_session(open_session& s, std::chrono::nanoseconds limit) {
  if (std::exchange(s.ended, true) || getpid() != s.pid) return;
  if (s.rank->over()) return abandon(s);  // it has lost a rank
  const auto until = std::chrono::steady_clock::now() + limit;
  try {
    std::string running;
    if (!s.rank->end_tasks(until, running)) return give_up(s, limit, running);
    s.rank->send_close();
    const auto last = std::max(until, std::chrono::steady_clock::now() + std::chrono::seconds(1));
    if (!s.rank->close_here(last, running)) return give_up(s, limit, running);
    leave_world(s, until - std::chrono::steady_clock::now());
  } catch (const std::exception& e) {
    base::log().error("the session did not end cleanly: {}", e.what());
    abandon(s);
  }
}

void end_at_exit() {
  if (the_session && the_session->world->rank() == 0) {
    end_session(*the_session,
                std::min<std::chrono::nanoseconds>(the_session->values.shutdown_timeout, std::chrono::seconds(2)));
  }
}

std::string start_line(const open_session& s, const join_plan& plan) {
  const pair_counts pairs = count_pairs(s.facts.nodes);
  std::string links;
  if (pairs.shared > 0) links += fmt::format(", {} pairs shared", pairs.shared);
  if (pairs.far > 0) links += fmt::format(", {} pairs {}", pairs.far, s.facts.fabric);
  const std::size_t least = plan.least_store >> 20, most = plan.most_store >> 20;
  return fmt::format("{} ranks, {} nodes, {:g} slots, fabric {} ({}){}, store {} MiB a node", s.world->size(),
                     s.world->nodes(), plan.slots, s.facts.fabric, s.facts.fabric_why, links,
                     least == most ? fmt::format("{}", most) : fmt::format("{} to {}", least, most));
}

// All ranks: joins the world, opens the window, starts this rank. Returns with it running.
open_session& open(std::unique_ptr<mpi::world> world, joining_result asked) {
  auto* s = new open_session;
  s->world = std::move(world);
  join_plan plan = agree(*s->world, std::move(asked));
  s->values = plan.values;
  if (s->values.spill_dir.empty()) {
    s->values.spill_dir = choose_spill_folder(slurm::read_environment().tmpdir, std::getenv("TMPDIR"));
  }
  s->pid = getpid();
  base::set_log_level(s->values.log);
  mpi::window_options options;
  options.pool_bytes = plan.store_bytes;
  options.ledger_bytes = std::max<std::size_t>(4096, objectstore::ledger_bytes(plan.store_bytes / mpi::extent_bytes));
  options.books_bytes = objectstore::values::books_for(plan.store_bytes, s->world->node_ranks().size());
  options.usable_bytes = plan.usable_bytes;
  s->window = std::make_unique<mpi::node_window>(*s->world, options);
  network net = join_network(*s->world, s->values.fabric);
  s->facts = std::move(plan.facts);
  s->facts.fabric = net.name;
  s->facts.fabric_why = net.why;
  s->facts.devices = net.devices;
  s->rank = std::make_unique<process>(plan.setup, s->values, function_table::build(), *s->window);
  if (net.way) {
    s->rank->connect(
        std::move(net.way), [s](rank_t peer, const std::string& why) { on_death(*s, peer, why); },
        [s] { leave_lost(*s); });
  }
  if (s->world->rank() == 0) {
    s->rank->become_head(plan.offers);
    base::log().info("{}", start_line(*s, plan));
    if (!plan.warning.empty()) base::log().warn("{}", plan.warning);
  }
  the_session = s;
  set_instance(s->rank.get());
  s->rank->start_threads();
  start_watch(*s);
  return *s;
}

// A worker, until the head closes. The head gives up first and speaks for all; where it does not, this rank does.
void serve_until_closed(open_session& s) {
  constexpr std::chrono::nanoseconds head_start = std::chrono::seconds(2), most = std::chrono::hours(24 * 365);
  const std::chrono::nanoseconds limit = std::min<std::chrono::nanoseconds>(s.values.shutdown_timeout, most);
  std::string running;
  try {
    if (!s.rank->serve(limit + head_start, running)) throw error(too_long(limit, running));
    leave_world(s, limit + head_start);
  } catch (const error&) {
    if (s.window->is_open() && run_ends(s).load() == yes) leave_lost(s);
    throw;
  }
}

// A worker whose rank 0 throws the same, so that all of them can leave MPI: what agree() refuses, and a node without
// room for its window. REQUIRES: called before the session runs.
bool refused_alike(const std::exception& e) {
  return dynamic_cast<const config_error*>(&e) || dynamic_cast<const join_refused*>(&e) ||
         dynamic_cast<const out_of_memory*>(&e);
}

// A worker that cannot go on. Rank 0 tells what all refuse alike; what happened here only, nobody else can tell, and
// MPI would wait in vain for the others.
[[noreturn]] void end_worker(const std::string& where, const std::exception& e) {
  if (!the_session && refused_alike(e)) {
    base::log().debug("{} ends: {}", where, e.what());
    std::fflush(nullptr);
    finalize_quietly();
  } else {
    base::log().error("{} ends: {}", where, e.what());
    std::fflush(nullptr);
  }
  _exit(2);
}

void refuse_second_init() {
  if (the_session) throw config_error("rota::init was called before in this process: a program has one session");
}

}  // namespace

std::string leak_report() {
  running_instance();
  return the_session->rank->leaks();
}

std::size_t stored_values() { return running_instance().store().live_objects(); }
std::size_t spilled_bytes() {
  running_instance();
  std::size_t all = 0;
  for (int r = 0; r < the_session->window->size(); ++r) {
    all += objectstore::board_at(the_session->window->board(r)).spilled.load(std::memory_order_relaxed);  // a number
  }
  return all;
}
std::size_t store_bytes() { return std::size_t{running_instance().store().extents()} * mpi::extent_bytes; }
std::string spill_folder() {
  running_instance();
  return the_session->values.spill_dir;
}
const start_facts& facts_of_start() {
  running_instance();
  return the_session->facts;
}

std::size_t runtime_threads() { return running_instance().thread_count(); }

}  // namespace detail

session init(int& argc, char**& argv, config c) {
  detail::refuse_second_init();
  int mpi_of_program = 0;
  MPI_Initialized(&mpi_of_program);
  detail::joining_result asked = detail::read_settings(argc, argv, c);
  try {
    if (asked.error.empty()) detail::prepare_network(asked.values.fabric);
  } catch (const config_error& e) {
    asked.error = e.what();  // agree() tells all
  }
  const slurm::environment job = slurm::read_environment();
  auto world = mpi::world::start(argc, argv, {slurm::advice_when_alone(job), slurm::advice_with_old_pmi(job)});
  const bool worker = world->rank() != 0;
  const std::string where = fmt::format("rank {} ({})", world->rank(), world->facts(world->rank()).host);
  try {
    detail::open_session& s = detail::open(std::move(world), std::move(asked));
    if (!worker) {
      std::atexit(detail::end_at_exit);
      return session(session::opened{});
    }
    detail::serve_until_closed(s);
    std::exit(0);
  } catch (const std::exception& e) {
    if (worker) detail::end_worker(where, e);
    // The program may go on; the others leave MPI now, and would wait for this rank.
    if (!mpi_of_program && detail::refused_alike(e)) detail::finalize_quietly();
    throw;
  }
}

session init(MPI_Comm comm, config c) {
  detail::refuse_second_init();
  int argc = 0;
  char** argv = nullptr;
  detail::joining_result asked = detail::read_settings(argc, argv, c);
  auto world = mpi::world::adopt(comm);
  if (world->rank() != 0)
    throw config_error("rota::init(comm): only rank 0 of the communicator calls it, others serve");
  detail::open(std::move(world), std::move(asked));
  std::atexit(detail::end_at_exit);
  return session(session::opened{});
}

void serve(MPI_Comm comm, config c) {
  detail::refuse_second_init();
  int argc = 0;
  char** argv = nullptr;
  detail::joining_result asked = detail::read_settings(argc, argv, c);
  auto world = mpi::world::adopt(comm);
  if (world->rank() == 0) throw config_error("rota::serve(comm): rank 0 of the communicator calls rota::init");
  detail::serve_until_closed(detail::open(std::move(world), std::move(asked)));
}

session::~session() {
  if (open_) detail::end_session(*detail::the_session, detail::the_session->values.shutdown_timeout);
}

}  // namespace rota
