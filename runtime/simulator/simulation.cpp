#include "runtime/simulator/simulation.h"

#include <fmt/format.h>

#include <stdexcept>

namespace rota::simulator {
namespace {

void push(std::deque<base::buffer>& to, bytes_view record) {
  to.emplace_back();
  to.back().append(record);
}

constexpr std::uint64_t most_events = 2'000'000;

}  // namespace

class simulation::agent_outbox : public wire::outbox {
 public:
  agent_outbox(simulation& all, rank_t self) : all_(all), self_(self) {}
  void send(rank_t to, bytes_view record) override {
    all_.trace_record(self_, to, record);
    site& s = all_.sites_[self_];
    if (to != self_) return all_.network_->send(self_, to, record);
    push(self_ == 0 && wire::for_head(wire::type_of(record)) ? s.to_head : s.to_agent, record);
  }

 private:
  simulation& all_;
  rank_t self_;
};

class simulation::head_outbox : public wire::outbox {
 public:
  explicit head_outbox(simulation& all) : all_(all) {}
  void send(rank_t to, bytes_view record) override {
    all_.trace_record(no_rank, to, record);
    if (to == 0) return push(all_.sites_[0].to_agent, record);
    all_.network_->send(0, to, record);
  }

 private:
  simulation& all_;
};

simulation::simulation(std::uint64_t seed, bool trace) : random_(seed), trace_(trace) {
  check_every_ = seed % 8 == 0 || trace ? 1 : 20;
  make_cluster();
}

simulation::~simulation() = default;

void simulation::make_cluster() {
  std::uint32_t ranks = random_.between(2, 8);
  bool losses = random_.chance(60);
  shape_.wide = random_.chance(30);
  shape_.ranks.resize(ranks);
  const std::uint32_t per_node = random_.between(1, 3);
  std::uint32_t broad = 0;
  for (std::uint32_t r = 1; r < ranks; ++r) {
    // Whoever loses ranks has one node: what a lost rank's store held is read by its node.
    shape_.ranks[r] = {random_.between(1, 3), losses ? 0 : r / per_node,
                       random_.chance(30) ? random_.between(1, 2) : 0u};
    broad += shape_.ranks[r].slots >= 2 ? 1 : 0;
  }
  shape_.cpu_actor = !losses && (shape_.wide ? broad > 1 : broad > 0);
  network_ = std::make_unique<network>(ranks, random_);
  head_out_ = std::make_unique<head_outbox>(*this);
  head_ = std::make_unique<scheduler::scheduler>(*head_out_);
  sites_.resize(ranks);
  for (rank_t r = 0; r < ranks; ++r) {
    wire::resources offered;
    offered.cpus = shape_.ranks[r].slots * wire::resources::unit;
    if (shape_.ranks[r].custom > 0) offered.others = {{"lamp", shape_.ranks[r].custom * wire::resources::unit}};
    shape_.ranks[r].custom *= wire::resources::unit;
    head_->join(r, {shape_.ranks[r].node, offered, fmt::format("host{}", r)});
    site& s = sites_[r];
    s.rank = r;
    s.outbox = std::make_unique<agent_outbox>(*this, r);
    s.agent_ = std::make_unique<agent::agent>(r, offered, *s.outbox);
    s.agent_->free_place = [this, &s](std::uint64_t place) {
      demand(s.heap.erase(place) == 1, fmt::format("place {} of rank {} is freed once", place, s.rank));
    };
    s.agent_->fetch = [this, &s](std::uint64_t number, const agent::source& from, std::uint64_t) {
      fetch(s, number, from.rank, from.place);
    };
  }
  std::vector<std::uint32_t> nodes;
  for (const rank_shape& r : shape_.ranks) nodes.push_back(r.node);
  for (site& s : sites_) s.agent_->set_nodes(nodes);
  if (!losses || ranks < 3) return;
  constexpr std::uint32_t spans[] = {300, 3'000, 10'000};
  std::uint32_t span = spans[random_.below(3)];
  for (std::uint32_t n = random_.between(1, ranks - 2); n > 0; --n) {
    network_->schedule(event_kind::die, random_.between(1, ranks - 1), 0, random_.below(span));
  }
}

summary simulation::run() {
  drain_local(sites_[0]);
  start_driver();
  event e;
  while (network_->next(e)) {
    ++summary_.events;
    demand(summary_.events < most_events, "the run comes to an end");
    happen(e);
    if (summary_.events % check_every_ != 0) continue;
    head_->check();
    check_accounts();
    check_cover();
  }
  check_end();
  summary_.head = head_->count();
  return summary_;
}

void simulation::happen(const event& e) {
  site& s = sites_[e.kind == event_kind::deliver ? static_cast<rank_t>(e.b) : e.a];
  if (e.kind == event_kind::die) return die(e.a);
  if (e.kind == event_kind::lose) return lose(e.a);
  if (!s.alive) {
    base::buffer nobody_reads;
    if (e.kind == event_kind::deliver) network_->take(e.a, s.rank, nobody_reads);
    return;
  }
  switch (e.kind) {
    case event_kind::deliver:
      deliver(e.a, s.rank);
      break;
    case event_kind::step:
      step_once(s, static_cast<std::uint32_t>(e.b));
      break;
    case event_kind::hunt:
      s.hunt_waits = false;
      hunt(s);
      break;
    case event_kind::arrive:
      arrive(s, e.b);
      break;
    case event_kind::flush:
      s.flush_waits = false;
      s.agent_->flush();
      break;
    default: {
      auto* o = reinterpret_cast<agent::object*>(e.b);
      std::erase(s.dropping, o);
      s.agent_->dropped(*o);
    }
  }
  after(s);
}

void simulation::deliver(rank_t from, rank_t to) {
  base::buffer record;
  if (network_->take(from, to, record)) dispatch(from, to, record.view());
}

void simulation::dispatch(rank_t from, rank_t to, bytes_view record) {
  site& s = sites_[to];
  wire::message type = wire::type_of(record);
  if (to == 0 && wire::for_head(type)) {
    to_head(from, record);
    return drain_local(s);
  }
  if (type == wire::message::lost) {
    // What the lost rank had put on its link is taken in before the loss is.
    rank_t lost = base::cursor(record).get<wire::lost_head>().rank;
    base::buffer earlier;
    while (network_->take(lost, to, earlier)) dispatch(lost, to, earlier.view());
  }
  if (trace_) trace(fmt::format("  rank {} takes {} from {}", to, int(type), from));
  if (type == wire::message::lend) return lend(s, from, base::cursor(record).get<wire::lend_head>());
  demand(s.agent_->receive(from, record), "a message is the head's or an agent's");
  drain_local(s);
}

// As worker/transfers.cpp does: asks the owner for the bytes, if there is room for them.
void simulation::fetch(site& s, std::uint64_t number, rank_t from, std::uint64_t place) {
  demand(shape_.ranks[from].node != shape_.ranks[s.rank].node, "what lies on the own node is not fetched");
  wire::lend_head ask;
  ask.number = number;
  ask.place = place;
  s.outbox->send(from, wire::as_bytes(ask));
}

void simulation::lend(site& owner, rank_t to, const wire::lend_head& asked) {
  auto at = owner.heap.find(asked.place);
  transfers_[++last_transfer_] = {asked.number,
                                  at == owner.heap.end() ? 0 : at->second};  // 0: nobody wants it any more
  network_->schedule(event_kind::arrive, to, last_transfer_, 1 + random_.below(random_.chance(80) ? 50 : 5'000));
}

void simulation::arrive(site& s, std::uint64_t id) {
  const transfer t = transfers_.extract(id).mapped();
  if (random_.chance(3)) {
    ++summary_.refused;
    return s.agent_->fetched(t.number, wire::fetch_outcome::no_room, 0);
  }
  ++summary_.copies;
  s.heap[++s.places] = t.hash;
  s.agent_->fetched(t.number, wire::fetch_outcome::whole, s.places);
}

void simulation::drain_local(site& s) {
  while (!s.to_head.empty() || !s.to_agent.empty()) {
    bool heads = !s.to_head.empty();
    std::deque<base::buffer>& queue = heads ? s.to_head : s.to_agent;
    base::buffer record = std::move(queue.front());
    queue.pop_front();
    if (heads) {
      to_head(0, record.view());
    } else {
      rank_t from = s.rank;
      bool lost = wire::type_of(record.view()) == wire::message::lost;
      if (trace_)
        trace(fmt::format("  rank {} takes its own {}{}", from, int(record.view()[0]), lost ? " (lost)" : ""));
      demand(s.agent_->receive(from, record.view()), "a message is the head's or an agent's");
    }
  }
}

// Whatever happened on a rank: its threads look around.
void simulation::after(site& s) {
  drain_local(s);
  poll_all(s);
  if (s.agent_->has_unsent_counts()) {
    if (random_.chance(40)) {
      s.agent_->flush();
    } else if (!std::exchange(s.flush_waits, true)) {
      network_->schedule(event_kind::flush, s.rank, 0, 1 + random_.below(30));
    }
  }
  drain_local(s);
  bool may_start = s.agent_->runnable() > 0;
  if (may_start && !std::exchange(s.hunt_waits, true)) {
    network_->schedule(event_kind::hunt, s.rank, 0, random_.below(10));
  }
}

// The rank stops between two instructions. Of what it had put on each link a part may still arrive.
void simulation::die(rank_t rank) {
  site& s = sites_[rank];
  if (!s.alive) return;
  trace(fmt::format("rank {} dies", rank));
  s.alive = false;
  ++summary_.lost;
  s.running.clear();
  for (rank_t to = 0; to < sites_.size(); ++to) {
    network::records& left = network_->link(rank, to);
    std::size_t keep = random_.chance(30) ? left.size() : random_.below(static_cast<std::uint32_t>(left.size()) + 1);
    left.resize(keep);
  }
  network_->schedule(event_kind::lose, rank, 0, 1 + random_.below(random_.chance(50) ? 20 : 2000));
}

void simulation::lose(rank_t rank) {
  base::buffer record;
  while (network_->take(rank, 0, record)) dispatch(rank, 0, record.view());
  trace(fmt::format("the head loses rank {}", rank));
  head_->lose(rank);
  after(sites_[0]);
}

void simulation::demand(bool holds, const std::string& what) const {
  if (!holds) throw std::logic_error("broken: " + what);
}

summary simulate(std::uint64_t seed, bool trace) { return simulation(seed, trace).run(); }

}  // namespace rota::simulator
