// Making, serving and ending one rank.
#include "runtime/worker/process.h"

#include <fmt/format.h>
#include <rota/error.h>

#include "runtime/base/futex.h"
#include "runtime/base/log.h"

namespace rota::detail {

process::process(rank_setup setup, config values, function_table functions, mpi::node_window& window)
    : setup_(std::move(setup)),
      values_(std::move(values)),
      functions_(std::move(functions)),
      window_(window),
      links_(window, setup_.node_ranks, window.rank()),
      outboxes_(setup_.rank, links_),
      stored_(
          window, setup_, values_, outboxes_.of_agent(),
          [this](const std::function<void()>& use) {
            turn at_the_pump(*this);
            use();
            news_ = true;
          },
          [this](std::uint64_t number, wire::fetch_outcome outcome, std::uint64_t cell) {
            agent_.fetched(number, outcome, cell);
          }),
      far_out_(*this),
      agent_(setup_.rank, setup_.offered, outboxes_.of_agent()),
      function_ns_(functions_.size(), unknown_ns) {
  for (std::uint32_t i = 0; i < functions_.size(); ++i) titles_.push_back(function_title(functions_.name(i)));
  agent_.free_place = [this](std::uint64_t cell) { store().free(cell, outboxes_.of_agent()); };
  agent_.set_nodes(setup_.nodes);
  agent_.fetch = [this](std::uint64_t number, const agent::source& from, std::uint64_t size) {
    stored_.fetch(number, from, size);
  };
  agent_.function_name = [this](std::uint32_t function) { return titles_[function]; };
}

void process::become_head(const std::vector<scheduler::rank_offer>& offers) {
  head_ = std::make_unique<scheduler::scheduler>(outboxes_.of_head());
  outboxes_.set_head(*head_);
  head_->function_name = [this](std::uint32_t function) { return titles_[function]; };
  for (rank_t r = 0; r < offers.size(); ++r) head_->join(r, offers[r]);
}

object_id process::throw_no_ids() const {
  throw error(fmt::format("rank {} ({}) has used up its {} object ids", setup_.rank, setup_.host, most_sequence));
}

void process::throw_unknown(rank_t from, wire::message type) const {
  throw std::logic_error(fmt::format("rank {} ({}) got a message of no known type ({}) from rank {}", setup_.rank,
                                     setup_.host, int(type), from));
}

void process::throw_over() const {
  if (!lost_why_.empty()) throw rank_lost(lost_why_);
  throw config_error("the session has ended, and a program has one: keep it open for as long as it is used");
}

// Nothing new once the session ends, or it never would.
void process::refuse_when_ending() const {
  if (ending()) throw_over();
}

void process::lose(std::string why) {
  if (over()) return;
  lost_why_ = std::move(why);
  over_.store(true, std::memory_order_release);  // pairs with over()
  tell_clients();
}

// The name in the source, out of a __PRETTY_FUNCTION__ with "... [with auto F = name; ...]".
std::string process::function_title(std::string_view pretty) {
  for (std::string_view key : {"auto M = ", "auto F = ", "C = "}) {
    std::size_t start = pretty.find(key);
    if (start == std::string_view::npos) continue;
    start += key.size();
    std::size_t end = pretty.find_first_of(";]", start);
    std::string title(pretty.substr(start, end == std::string_view::npos ? end : end - start));
    if (title.starts_with('&')) title.erase(0, 1);
    for (std::string_view noise : {"{anonymous}::", "<lambda closure object>"}) {
      for (std::size_t at; (at = title.find(noise)) != std::string::npos;) title.erase(at, noise.size());
    }
    return title;
  }
  return std::string(pretty);
}

void process::poll() {
  turn at_the_pump(*this);
  step();
}

base::buffer process::query(wire::query_kind kind, bytes_view body) {
  std::uint32_t number = visit([&](agent::agent& a) { return a.ask(kind, body); });
  std::optional<base::buffer> answer;
  wait_until([&] { return answer || (answer = agent_.take_reply(number)); }, std::nullopt);
  if (!answer) throw_over();
  return std::move(*answer);
}

std::string process::describe_timeout(object_id id) {
  std::string where;
  if (head_) {
    turn at_the_pump(*this);
    where = head_->progress_of(id);
  }
  return fmt::format("get on rank {} ({}): the value of object {:#x} of rank {} was not there in time{}", setup_.rank,
                     setup_.host, id, origin_of(id), where);
}

// A worker's main thread: sleeps until the head says close, then lets what runs end, for `limit` at most.
bool process::serve(std::chrono::nanoseconds limit, std::string& names) {
  while (close_asked_.load() == 0) base::futex_wait(close_asked_, 0);
  return close_here(std::chrono::steady_clock::now() + limit, names);
}

// What has not started is dropped, actors get their destructors, threads end. False if something still ran at the
// deadline; `names` then says what.
bool process::close_here(std::chrono::steady_clock::time_point until, std::string& names) {
  ending_.store(true, std::memory_order_relaxed);
  visit([](agent::agent& a) { a.close(); });
  if (!wait_until([this] { return agent_.idle() && !links_.clogged(); }, until) || !flush_links(until)) {
    turn at_the_pump(*this);
    names =
        fmt::format("{} calls or destructors of actors on rank {} ({})", agent_.live_jobs(), setup_.rank, setup_.host);
    return false;
  }
  stop_threads();
  for (;;) {  // threads of the program that wait for a value hear that there will be none
    std::uint32_t waiting = 0;
    {
      turn at_the_pump(*this);
      over_.store(true, std::memory_order_release);    // pairs with over()
      closed_.store(true, std::memory_order_release);  // pairs with closed()
      tell_clients();
      waiting = clients_;
    }
    if (waiting == 0) return true;
    if (std::chrono::steady_clock::now() >= until) {
      names =
          fmt::format("{} threads of the program in get or wait on rank {} ({})", waiting, setup_.rank, setup_.host);
      return false;
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void process::abandon() {
  over_.store(true, std::memory_order_release);    // pairs with over()
  closed_.store(true, std::memory_order_release);  // pairs with closed()
}

// Rank 0: false if tasks still ran at the deadline; `names` then says which.
bool process::end_tasks(deadline until, std::string& names) {
  ending_.store(true, std::memory_order_relaxed);
  visit([this](agent::agent&) { head_->drop_queued(); });
  bool ended = wait_until([this] { return head_->assigned_tasks() == 0; }, until);
  if (ended) return true;
  turn at_the_pump(*this);
  for (auto [id, rank] : head_->some_assigned(4)) {
    names += fmt::format("{}{} ({:#x}) on rank {} ({})", names.empty() ? "" : ", ", head_->title_of(id), id, rank,
                         head_->host_of(rank));
  }
  return false;
}

void process::send_close() {
  turn at_the_pump(*this);
  if (links_.far()) links_.far()->forgive_silence();
  std::byte close = static_cast<std::byte>(wire::message::close);
  for (rank_t r = 0; r < setup_.world_size; ++r) {
    if (r != setup_.rank) links_.send(r, {&close, 1});
  }
}

std::string process::leaks() {
  auto clean = [this] {
    return head_->live_objects() == 0 && agent_.live_objects() == 0 && store().live_objects() == 0 &&
           store().pins().in_use() == 0 && store().files().bytes() == 0;
  };
  // Drops are no news to those who wait: it is asked again and again.
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while (std::chrono::steady_clock::now() < until) {
    if (wait_until(clean, std::chrono::steady_clock::now() + std::chrono::milliseconds(10))) return {};
  }
  turn at_the_pump(*this);
  std::string text = head_->describe_live(10) + agent_.describe_live(10);
  if (std::size_t places = store().live_objects())
    text += fmt::format("{} values in rank 0's part of the store\n", places);
  if (std::size_t pinned = store().pins().in_use()) text += fmt::format("{} stored values pinned by rank 0\n", pinned);
  if (std::size_t bytes = store().files().bytes()) text += fmt::format("{} bytes spilled by rank 0\n", bytes);
  return text;
}

}  // namespace rota::detail
