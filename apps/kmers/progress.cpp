#include "apps/kmers/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

namespace kmers {

progress::progress() : terminal_(isatty(STDERR_FILENO) == 1) {}

progress::~progress() { wipe(); }

void progress::show(const std::string& what, std::uint64_t done, std::uint64_t all) {
  if (!terminal_ || all == 0) return;
  constexpr std::uint64_t cells = 40;
  done = std::min(done, all);
  const auto filled = static_cast<std::size_t>(done * cells / all);
  std::string line = what + " [" + std::string(filled, '#') + std::string(cells - filled, ' ') + "] " +
                     std::to_string(done * 100 / all) + "%";
  if (line == drawn_) return;
  std::fprintf(stderr, "\r\x1b[K%s", line.c_str());
  drawn_ = std::move(line);
}

void progress::wipe() {
  if (drawn_.empty()) return;
  std::fputs("\r\x1b[K", stderr);
  drawn_.clear();
}

}  // namespace kmers
