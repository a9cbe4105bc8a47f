#include <rota/facts.h>
#include <rota/task.h>

#include <algorithm>

#include "runtime/client/instance.h"

namespace rota {
namespace {

struct rank_fact {
  rank_t rank = 0;
  std::uint32_t node = 0;
  bool alive = false;
  std::string host;
  wire::resources total, free;
};

std::vector<rank_fact> ask() {
  base::buffer answer = detail::running_instance().query(wire::query_kind::nodes, {});
  base::cursor from(answer.view());
  std::vector<rank_fact> facts(from.get<std::uint32_t>());
  for (rank_fact& f : facts) {
    f.rank = from.get<rank_t>();
    f.node = from.get<std::uint32_t>();
    f.alive = from.get<std::uint32_t>() != 0;
    f.host = base::get_text(from);
    f.total = wire::get_resources(from);
    f.free = wire::get_resources(from);
  }
  std::erase_if(facts, [](const rank_fact& f) { return !f.alive; });
  return facts;
}

void add(resources& to, const wire::resources& more) {
  auto units = [](std::int64_t amount) { return static_cast<double>(amount) / wire::resources::unit; };
  to.cpus += units(more.cpus);
  for (const auto& [name, amount] : more.others) {
    if (name == "memory") {
      to.memory += static_cast<std::size_t>(amount);
    } else if (name == "gpus") {
      to.gpus += units(amount);
    } else {
      to.custom[name] += units(amount);
    }
  }
}

}  // namespace

std::vector<node_info> nodes() {
  std::vector<node_info> found;
  for (const rank_fact& f : ask()) {
    auto at = std::find_if(found.begin(), found.end(), [&](const node_info& n) { return n.id == f.node; });
    if (at == found.end()) {
      at = found.insert(found.end(), node_info{});
      at->id = f.node;
      at->host = f.host;
    }
    at->ranks.push_back(f.rank);
    add(at->total, f.total);
  }
  return found;
}

resources cluster_resources() {
  resources sum;
  for (const rank_fact& f : ask()) add(sum, f.total);
  return sum;
}

resources available_resources() {
  resources sum;
  for (const rank_fact& f : ask()) add(sum, f.free);
  return sum;
}

task_info this_task() {
  const detail::running_task& task = detail::process::current();
  if (!task.job) detail::throw_config("this_task: this thread runs no task");
  task_info info;
  info.id = task.id;
  info.name = task.name;
  info.attempt = task.attempt;
  info.rank = detail::running_instance().setup().rank;
  info.node = detail::running_instance().setup().node;
  return info;
}

bool task_info::cancelled() const { return detail::running_instance().ending(); }

}  // namespace rota
