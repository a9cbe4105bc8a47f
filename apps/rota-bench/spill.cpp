// Four times what fits in the store.

#include <fcntl.h>
#include <rota/detail/session_state.h>
#include <rota/rota.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "apps/rota-bench/bench.h"
#include "apps/rota-bench/fresh_memory.h"

namespace bench {
namespace {

using word = std::uint64_t;

constexpr std::size_t value_words = std::size_t{1} << 20;
constexpr std::size_t value_bytes = value_words * sizeof(word);  // 8 MiB
constexpr std::size_t values_in_batch = 8;                       // 64 MiB, as the spiller's
constexpr std::size_t batch_bytes = values_in_batch * value_bytes;
constexpr std::size_t times_the_store = 4;

constexpr word word_of(std::size_t value, std::size_t at) { return (value << 32) + at * 3; }

void fill(std::span<word> words, std::size_t value) {
  for (std::size_t at = 0; at < words.size(); ++at) words[at] = word_of(value, at);
}

void check(std::span<const word> words, std::size_t value) {
  word wrong = words.size() ^ value_words;
  for (std::size_t at = 0; at < words.size(); ++at) wrong |= words[at] ^ word_of(value, at);
  expect(wrong == 0, "spill", "wrong values");
}

// Of one round: the seconds of both halves.
struct halves {
  double write = 0, read = 0;
};

// A file of the same bytes without a name in the folder that rota spills to, and memory for one batch.
class bare_file {
 public:
  halves write_and_read(std::size_t batches) {
    std::string path = rota::detail::spill_folder() + "/rota-bench-XXXXXX";
    const int file = mkostemp(path.data(), O_CLOEXEC);
    if (file < 0) throw std::system_error(errno, std::generic_category(), path);
    unlink(path.c_str());
    halves took;
    took.write = seconds_of([&] {
      for (std::size_t batch = 0; batch < batches; ++batch) {
        for (std::size_t i = 0; i < values_in_batch; ++i) fill(value(i), batch * values_in_batch + i);
        move_all(pwrite, "pwrite", file, batch);
      }
    });
    took.read = seconds_of([&] {
      for (std::size_t batch = 0; batch < batches; ++batch) {
        move_all(pread, "pread", file, batch);
        for (std::size_t i = 0; i < values_in_batch; ++i) check(value(i), batch * values_in_batch + i);
      }
    });
    close(file);
    return took;
  }

 private:
  std::span<word> value(std::size_t i) const {
    return {static_cast<word*>(memory_.data()) + i * value_words, value_words};
  }

  template <class Call>
  void move_all(Call call, const char* name, int file, std::size_t batch) {
    for (std::size_t done = 0; done < batch_bytes;) {
      const ssize_t moved = call(file, static_cast<char*>(memory_.data()) + done, batch_bytes - done,
                                 static_cast<off_t>(batch * batch_bytes + done));
      if (moved <= 0) throw std::system_error(moved < 0 ? errno : EIO, std::generic_category(), name);
      done += static_cast<std::size_t>(moved);
    }
  }

  fresh_memory memory_{batch_bytes};
};

// Until the disk has its room back, which is nobody's time.
void wait_until_nothing_is_spilled() {
  const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (rota::detail::spilled_bytes() > 0) {
    expect(std::chrono::steady_clock::now() < until, "spill", "values stay on disk");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

halves put_and_get(std::size_t values) {
  std::vector<rota::ref<rota::array<word>>> refs;
  halves took;
  took.write = seconds_of([&] {
    for (std::size_t i = 0; i < values; ++i) {
      auto made = rota::make_array<word>(value_words);
      fill({made.data(), made.size()}, i);
      refs.push_back(rota::put(std::move(made)));
    }
  });
  took.read = seconds_of([&] {
    for (std::size_t i = 0; i < values; ++i) {
      const rota::array<word> got = refs[i].get();
      check({got.data(), got.size()}, i);
    }
  });
  expect(rota::detail::spilled_bytes() > 0, "spill", "nothing left memory");
  refs.clear();
  wait_until_nothing_is_spilled();
  return took;
}

std::string rates(double bytes, const std::vector<halves>& ours, const std::vector<halves>& theirs) {
  const auto rate = [bytes](const std::vector<halves>& all, double halves::*half) {
    std::vector<double> found;
    for (const halves& one : all) found.push_back(bytes / one.*half * 1e-9);
    return std::to_string(median(std::move(found)));
  };
  return "write " + rate(ours, &halves::write) + " of " + rate(theirs, &halves::write) + " GB/s, read " +
         rate(ours, &halves::read) + " of " + rate(theirs, &halves::read) + " GB/s";
}

}  // namespace

void run_spill(const context& run) {
  const std::size_t batches = rota::detail::store_bytes() * times_the_store / batch_bytes;
  const auto bytes = static_cast<double>(batches * batch_bytes);
  std::vector<halves> ours, theirs;
  const auto rate = [bytes](std::vector<halves>& all, const halves& took) {
    all.push_back(took);
    return 2 * bytes / (took.write + took.read) * 1e-9;
  };
  bare_file bare;
  const medians found = alternate(
      run, "spill", [&] { return rate(ours, put_and_get(batches * values_in_batch)); },
      [&] { return rate(theirs, bare.write_and_read(batches)); });
  report(run, {.bench = "spill",
               .value = found.rota,
               .unit = "GB/s",
               .limit = found.limit,
               .limit_is = "the same bytes to a file of the same folder and back, pwrite and pread of 64 MiB",
               .note = rates(bytes, ours, theirs)});
}

}  // namespace bench
