// What must hold: the invariants of docs/protocol.md that need more than the head to see.
#include <fmt/format.h>

#include "runtime/simulator/simulation.h"

namespace rota::simulator {
namespace {

using wire::failure_kind;

constexpr std::uint32_t after_loss = 1u << int(failure_kind::rank_lost) | 1u << int(failure_kind::object_lost) |
                                     1u << int(failure_kind::actor_died) | 1u << int(failure_kind::actor_unavailable) |
                                     1u << int(failure_kind::infeasible);

// Adds what a message to the head will change in its sender's accounts.
void add_changes(std::unordered_map<object_id, std::int64_t>& changes, bytes_view record) {
  base::cursor from(record);
  switch (wire::type_of(record)) {
    case wire::message::spawned:
      ++changes[from.get<wire::spawned_head>().id];
      break;
    case wire::message::spawned_all: {
      auto head = from.get<wire::spawned_all_head>();
      for (std::uint32_t i = 0; i < head.count; ++i) ++changes[head.first + i];
      break;
    }
    case wire::message::publish:
      ++changes[from.get<wire::publish_head>().id];
      break;
    case wire::message::count: {
      auto head = from.get<wire::count_head>();
      for (std::uint32_t i = 0; i < head.plus; ++i) ++changes[from.get<object_id>()];
      for (std::uint32_t i = 0; i < head.minus; ++i) --changes[from.get<object_id>()];
      break;
    }
    default:
      break;
  }
}

}  // namespace

void simulation::to_head(rank_t from, bytes_view record) {
  wire::message type = wire::type_of(record);
  if (type == wire::message::spawned) made_known_.insert(base::cursor(record).get<wire::spawned_head>().id);
  if (type == wire::message::spawned_all) {
    auto head = base::cursor(record).get<wire::spawned_all_head>();
    for (std::uint32_t i = 0; i < head.count; ++i) made_known_.insert(head.first + i);
  }
  if (type == wire::message::publish) made_known_.insert(base::cursor(record).get<wire::publish_head>().id);
  if (trace_) trace(fmt::format("  the head takes {} from {}", int(type), from));
  head_->receive(from, record);
}

// One attempt of a task at a time, save on ranks that are gone; each call once.
void simulation::note_start(site& s, const agent::work& w) {
  if (w.kind == agent::job_kind::call) {
    demand(called_.insert(w.id).second, fmt::format("call {:#x} runs once", w.id));
  }
  if (w.kind != agent::job_kind::task && w.kind != agent::job_kind::construct) return;
  auto [at, first] = started_.try_emplace(w.id, w.attempt, s.rank);
  if (first) return;
  demand(!sites_[at->second.second].alive && w.attempt > at->second.first,
         fmt::format("task {:#x}, attempt {} on rank {}, runs again only when its rank, {}, is gone", w.id, w.attempt,
                     s.rank, at->second.second));
  at->second = {w.attempt, s.rank};
}

void simulation::check_value(const site& s, const agent::object& o) {
  const expectation& e = *expected_.at(o.id);
  if (o.state == agent::object_state::failed) {
    ++summary_.failures_seen;
    wire::failure f = wire::decode_failure(o.bytes());
    std::uint32_t allowed = e.kinds | (summary_.lost > 0 ? after_loss : 0);
    if (summary_.refused > 0) allowed |= bit(wire::failure_kind::out_of_memory);
    demand(allowed & bit(f.kind), fmt::format("object {:#x} must not fail ({}): {}", o.id, int(f.kind), f.what));
    return;
  }
  ++summary_.values_checked;
  demand(!e.fails, fmt::format("object {:#x} must fail", o.id));
  std::uint64_t hash = 0;
  if (o.kind == wire::value_kind::placed) {
    demand(shape_.ranks[o.owner].node == shape_.ranks[s.rank].node, "a value lies on the node that reads it");
    auto at = sites_[o.owner].heap.find(o.place);
    demand(at != sites_[o.owner].heap.end(), fmt::format("the place of {:#x} is not freed while in use", o.id));
    hash = at->second;
  } else {
    std::memcpy(&hash, o.bytes().data(), sizeof(hash));
  }
  demand(hash == e.hash, fmt::format("object {:#x} has the right value", o.id));
}

// A rank's flag `counted`, the head's account, and what is on its way from one to the other agree.
void simulation::check_accounts() const {
  for (const site& s : sites_) {
    if (!s.alive) continue;
    std::unordered_map<object_id, std::int64_t> changes;
    for (const base::buffer& record : network_->link(s.rank, 0)) add_changes(changes, record.view());
    for (const base::buffer& record : s.to_head) add_changes(changes, record.view());
    for (object_id id : s.agent_->unsent_plus()) ++changes[id];
    for (object_id id : s.agent_->unsent_minus()) --changes[id];
    s.agent_->for_each_object([&](const agent::object& o) {
      if (named_.contains(o.id)) return;  // counted by the head before this rank knows
      std::int64_t account = std::int64_t{head_->account_of(o.id, s.rank)} + changes[o.id];
      demand(account == ((o.flags & agent::object::counted) ? 1 : 0),
             fmt::format("the account of rank {} for {:#x} is {}, flags {:#x}", s.rank, o.id, account, o.flags));
    });
  }
}

// Nothing that a live rank names has been freed: the head holds it, or has not heard of it yet, or never will.
void simulation::check_cover() const {
  for (const site& s : sites_) {
    if (!s.alive) continue;
    s.agent_->for_each_object([&](const agent::object& o) {
      bool named = agent::named(o) || o.pins > 0 || o.loans > 0;
      bool used = named || o.claims != 0 || o.waiters || o.routes || (o.flags & agent::object::calling);
      demand(used, fmt::format("{:#x}, which nothing on rank {} uses, is gone", o.id, s.rank));
      if (!named || (o.flags & agent::object::local)) return;
      demand(!made_known_.contains(o.id) || head_->covered(o.id),
             fmt::format("{:#x} is kept: rank {} names it ({} handles, {} pins, {} loans, flags {:#x})", o.id, s.rank,
                         agent::handle_count(o), o.pins, o.loans, o.flags) +
                 (trace_ ? "\n" + s.agent_->describe_live(1000) : ""));
    });
  }
}

std::string simulation::what_waits() const {
  std::string text;
  for (const site& s : sites_) {
    if (!s.alive) continue;
    for (const auto& [id, a] : s.running) {
      object_id on = a.awaited ? a.awaited->id : 0;
      text += fmt::format("rank {}: activity {} (job {:#x}) waits for {:#x}{}{}\n", s.rank, id, a.job.id, on,
                          on ? head_->progress_of(on) : "", a.reply ? " (an answer)" : "");
    }
    text += s.agent_->describe_live(trace_ ? 1000 : 10);
  }
  return text + head_->describe_live(trace_ ? 1000 : 10);
}

void simulation::check_end() {
  head_->check();
  check_accounts();
  check_cover();
  for (const site& s : sites_) {
    if (s.alive) demand(s.running.empty(), "nothing waits for ever\n" + what_waits());
  }
  for (const site& s : sites_) {
    if (!s.alive) continue;
    demand(s.agent_->live_objects() == 0 && s.agent_->idle(), "no object is left on a rank\n" + what_waits());
    demand(s.agent_->actors_alive() == 0, fmt::format("no actor is left on rank {}\n", s.rank) + what_waits());
  }
  demand(head_->live_objects() == 0, "no object is left at the head\n" + what_waits());
  demand(head_->assigned_tasks() == 0, "no task is left");
  for (const site& s : sites_) {
    if (s.alive && summary_.lost == 0) {
      demand(s.heap.empty(), fmt::format("{} places of rank {} are freed", s.heap.size(), s.rank));
    }
  }
}

void simulation::trace(const std::string& text) const {
  if (trace_) fmt::print(stderr, "{:6} {}\n", network_->now(), text);
}

void simulation::trace_record(rank_t from, rank_t to, bytes_view record) const {
  if (!trace_) return;
  constexpr const char* names[] = {"",        "spawned",    "assign",   "route",     "value",   "done",
                                   "recall",  "recalled",   "blocked",  "count",     "counted", "pull",
                                   "publish", "where",      "actor_at", "end_actor", "call",    "returned",
                                   "settle",  "free_place", "query",    "reply",     "lost",    "sync"};
  std::string text;
  for (std::size_t at = 0; at < std::min<std::size_t>(record.size(), 320); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, record.data() + at, std::min<std::size_t>(8, record.size() - at));
    text += fmt::format(" {:x}", word);
  }
  trace(fmt::format("  {} -> {}: {}{}", from == no_rank ? "head" : fmt::format("{}", from), to, names[int(record[0])],
                    text));
}

}  // namespace rota::simulator
