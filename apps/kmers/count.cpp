#include "apps/kmers/count.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <span>
#include <string_view>
#include <utility>

#include "apps/kmers/chunk_reader.h"

namespace kmers {
namespace {

using run_refs = std::vector<rota::ref<run>>;

// So many runs of a part are merged at once. A count passes through log(chunks) / log(fan_in) merges.
constexpr std::size_t fan_in = 32;

template <class T>
rota::array<T> to_array(std::span<const T> values) {
  auto builder = rota::make_array<T>(values.size());
  std::copy(values.begin(), values.end(), builder.begin());
  return rota::array<T>(std::move(builder));
}

// Task: the runs of one chunk, an object for each part.
run_refs count_chunk(const rota::array<char>& bases, int k, const std::vector<kmer_code>& splitters) {
  std::vector<kmer_code> codes;
  append_canonical(std::string_view(bases.data(), bases.size()), k, codes);
  const std::vector<kmer_count> counts = count_codes(codes, k);
  run_refs parts;
  for (run_view piece : split_run(counts, splitters)) parts.push_back(rota::put(to_array(piece)));
  return parts;
}

// Task: one run of many. The refs come unresolved, and are ready.
run merge_part(const run_refs& refs) {
  const std::vector<run> runs = rota::get(refs);
  std::vector<run_view> views;
  for (const run& one : runs) views.emplace_back(one.data(), one.size());
  return to_array(run_view(merge_runs(views)));
}

part_summary summarize_part(const run& part, std::size_t top) {
  const run_view view(part.data(), part.size());
  return {add_up(view), highest_counts(view, top)};
}

// The runs of one part. Full levels are merged into the next as they fill, so that their room in the store is free
// again, while no count is merged more than a few times.
class part_merger {
 public:
  void add(rota::ref<run> one, std::size_t level = 0) {
    if (levels_.size() <= level) levels_.resize(level + 1);
    levels_[level].push_back(std::move(one));
    if (levels_[level].size() < fan_in) return;
    add(merge(std::exchange(levels_[level], {})), level + 1);
  }

  rota::ref<run> finish() {
    run_refs rest;
    for (run_refs& level : levels_) rest.insert(rest.end(), level.begin(), level.end());
    levels_.clear();
    return merge(rest);
  }

 private:
  // A task that waits inside holds a slot idle: the inputs are waited for here. Merges go before chunks, as they free
  // memory.
  static rota::ref<run> merge(const run_refs& inputs) {
    if (!inputs.empty()) rota::wait(inputs, {.count = inputs.size()});
    return rota::remote<merge_part>.with({.priority = 1, .name = "merge"})(inputs);
  }

  std::vector<run_refs> levels_{};
};

std::uint64_t total_bytes(const std::vector<std::string>& files) {
  std::uint64_t sum = 0;
  for (const std::string& file : files) {
    std::error_code error;
    const std::uint64_t bytes = std::filesystem::file_size(file, error);
    if (error) return 0;  // a pipe: nobody knows
    sum += bytes;
  }
  return sum;
}

}  // namespace

shape shape_for_cluster() {
  const auto slots = static_cast<std::size_t>(std::max(1.0, rota::cluster_resources().cpus));
  return {std::min<std::size_t>(2 * slots, 256), std::max<std::size_t>(8, 4 * slots)};
}

run_refs count_files(const std::vector<std::string>& files, std::size_t chunk, int k, const shape& cut, progress& bar) {
  const std::uint64_t all_bytes = total_bytes(files);
  chunk_reader reader(files, chunk, k);
  std::vector<kmer_code> splitters;
  std::vector<part_merger> mergers(cut.parts);
  std::deque<rota::ref<run_refs>> in_flight;
  auto collect_first = [&] {
    run_refs parts = in_flight.front().get();
    in_flight.pop_front();
    for (std::size_t i = 0; i < parts.size(); ++i) mergers[i].add(std::move(parts[i]));
  };
  bool first = true;
  while (const auto bases = reader.next()) {
    if (std::exchange(first, false)) {
      std::vector<kmer_code> sample;
      append_canonical(*bases, k, sample);
      splitters = choose_splitters(std::move(sample), k, cut.parts);
    }
    if (in_flight.size() == cut.in_flight) collect_first();
    const auto stored = rota::put(to_array(std::span<const char>(*bases)));
    in_flight.push_back(rota::remote<count_chunk>.with({.name = "count"})(stored, k, splitters));
    bar.show("counting", reader.bytes_read(), all_bytes);
  }
  while (!in_flight.empty()) collect_first();
  run_refs parts;
  for (part_merger& merger : mergers) parts.push_back(merger.finish());
  return parts;
}

part_summary summarize(const run_refs& parts, std::size_t top, progress& bar) {
  std::vector<rota::ref<part_summary>> summaries;
  for (const auto& part : parts) summaries.push_back(rota::remote<summarize_part>(part, top));
  part_summary all;
  for (std::size_t i = 0; i < summaries.size(); ++i) {
    bar.show("merging", i, summaries.size());
    const part_summary part = summaries[i].get();
    all.sums = all.sums + part.sums;
    all.top.insert(all.top.end(), part.top.begin(), part.top.end());
  }
  all.top = highest_counts(all.top, top);
  return all;
}

}  // namespace kmers
