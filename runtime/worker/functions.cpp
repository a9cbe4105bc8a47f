#include "runtime/worker/functions.h"

#include <link.h>
#include <rota/error.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <fstream>
#include <optional>
#include <span>
#include <string_view>
#include <tuple>

namespace rota::detail {
namespace {

// Constant-initialised: registrations may come before any other static of this file exists.
constinit std::atomic<registration*> newest_registration{nullptr};

// FNV-1a with 128 bits (offset basis and prime of draft-eastlake-fnv). It tells builds apart; it is no defence.
class fingerprint {
 public:
  void add(std::span<const char> bytes) {
    for (const char byte : bytes) {
      state_ ^= static_cast<unsigned char>(byte);
      state_ *= prime;
    }
  }
  void add(std::uint64_t number) {
    std::array<char, sizeof number> bytes;
    std::memcpy(bytes.data(), &number, sizeof number);
    add(bytes);
  }
  std::string hex() const {
    constexpr std::string_view digits = "0123456789abcdef";
    std::string out;
    for (int shift = 124; shift >= 0; shift -= 4) out += digits[static_cast<unsigned>(state_ >> shift) & 0xf];
    return out;
  }

 private:
  __extension__ using word = unsigned __int128;
  static constexpr word prime = (word{1} << 88) + 0x13b;
  word state_ = (word{0x6c62272e07bb0142} << 64) + 0x62b821756295c58d;
};

// An executable or shared library in this process.
struct module {
  std::uintptr_t base = 0;
  std::string path{};
  std::string build{};                                                // its build id in binary; empty where it has none
  std::vector<std::pair<std::uintptr_t, std::uintptr_t>> segments{};  // first address, one past the last
};

// The build id in one PT_NOTE segment: records of three 32-bit numbers (size of the name, size of the content, type),
// name and content, each padded to the segment's alignment.
std::optional<std::string> build_id_in(const char* notes, std::size_t size, std::size_t alignment) {
  const auto padded = [&](std::size_t length) { return (length + alignment - 1) / alignment * alignment; };
  ElfW(Nhdr) header;
  for (std::size_t at = 0; at + sizeof header <= size;) {
    std::memcpy(&header, notes + at, sizeof header);
    const std::size_t content = at + padded(sizeof header + header.n_namesz);
    if (content + header.n_descsz > size) return std::nullopt;
    const std::string_view name(notes + at + sizeof header, header.n_namesz);
    if (header.n_type == NT_GNU_BUILD_ID && name == std::string_view("GNU\0", 4)) {
      return std::string(notes + content, header.n_descsz);
    }
    at = content + padded(header.n_descsz);
  }
  return std::nullopt;
}

int add_module(dl_phdr_info* info, std::size_t, void* modules) {
  module found;
  found.base = info->dlpi_addr;
  found.path = info->dlpi_name;
  if (found.path.empty()) found.path = "/proc/self/exe";
  for (const ElfW(Phdr) & segment : std::span(info->dlpi_phdr, info->dlpi_phnum)) {
    const std::uintptr_t begin = info->dlpi_addr + segment.p_vaddr;
    if (segment.p_type == PT_LOAD) found.segments.emplace_back(begin, begin + segment.p_memsz);
    if (segment.p_type == PT_NOTE && found.build.empty()) {
      const auto id = build_id_in(reinterpret_cast<const char*>(begin), segment.p_memsz, segment.p_align == 8 ? 8 : 4);
      found.build = id.value_or("");
    }
  }
  static_cast<std::vector<module>*>(modules)->push_back(std::move(found));
  return 0;
}

// Stands in for the build id of a module that was linked without one.
std::string hash_of_file(const module& file) {
  std::ifstream in(file.path, std::ios::binary);
  fingerprint content;
  std::vector<char> block(std::size_t{1} << 16);
  while (in.read(block.data(), static_cast<std::streamsize>(block.size())) || in.gcount() > 0) {
    content.add(std::span(block).first(static_cast<std::size_t>(in.gcount())));
  }
  if (!in.eof()) {
    throw config_error("the functions of " + file.path +
                       " cannot be identified: it has no build id and cannot be read. Link it with -Wl,--build-id");
  }
  return "file " + content.hex();
}

std::size_t module_of(std::uintptr_t address, const std::vector<module>& modules, const registration& function) {
  for (std::size_t at = 0; at < modules.size(); ++at) {
    for (const auto& [begin, end] : modules[at].segments) {
      if (begin <= address && address < end) return at;
    }
  }
  throw config_error(std::string("the function ") + function.name +
                     " is in no executable or library of this process; functions must be in libraries linked at start");
}

struct located {
  registration* function;
  std::size_t module;
  std::uintptr_t offset;
};

// Every registration with its place, in the order of the ids. Two copies of one library have equal build ids; the
// order in which they were loaded, equal on all ranks, then decides.
std::vector<located> locate_all(std::vector<module>& modules) {
  std::vector<located> out;
  for (registration* at = newest_registration.load(std::memory_order_acquire); at != nullptr; at = at->next) {
    const auto address = reinterpret_cast<std::uintptr_t>(at->run);
    const std::size_t home = module_of(address, modules, *at);
    if (modules[home].build.empty()) modules[home].build = hash_of_file(modules[home]);
    out.push_back({at, home, address - modules[home].base});
  }
  std::sort(out.begin(), out.end(), [&](const located& a, const located& b) {
    return std::tuple<const std::string&, std::size_t, std::uintptr_t, std::string_view>(
               modules[a.module].build, a.module, a.offset, a.function->name) <
           std::tuple<const std::string&, std::size_t, std::uintptr_t, std::string_view>(
               modules[b.module].build, b.module, b.offset, b.function->name);
  });
  return out;
}

}  // namespace

registration::registration(trampoline code, const char* pretty_name) noexcept : run(code), name(pretty_name) {
  next = newest_registration.load(std::memory_order_relaxed);
  // Release: pairs with the acquire in locate_all, which then sees the fields.
  while (!newest_registration.compare_exchange_weak(next, this, std::memory_order_release, std::memory_order_relaxed)) {
  }
}

void throw_unregistered(const registration& function) {
  throw config_error(std::string("the function ") + function.name +
                     " has no id: either rota::init has not been called yet, or the library that holds the function was"
                     " loaded later (dlopen). Call init first; functions must be in libraries linked at start");
}

function_table function_table::build() {
  std::vector<module> modules;
  dl_iterate_phdr(&add_module, &modules);
  function_table table;
  std::optional<std::size_t> last_module;
  for (const located& next : locate_all(modules)) {
    if (last_module != next.module) table.builds_.push_back(modules[next.module].build);
    last_module = next.module;
    if (table.entries_.empty() || table.entries_.back().run != next.function->run) {
      table.entries_.push_back(
          {next.function->run, next.function->name, next.offset, static_cast<std::uint32_t>(table.builds_.size() - 1)});
    }
    next.function->index = static_cast<std::uint32_t>(table.entries_.size() - 1);
  }
  return table;
}

std::string function_table::digest(std::uint32_t wire_version) const {
  fingerprint all;
  all.add(wire_version);
  for (const std::string& build : builds_) {
    all.add(build.size());
    all.add(build);
  }
  for (const entry& function : entries_) {
    all.add(function.build);
    all.add(function.offset);
  }
  return all.hex();
}

}  // namespace rota::detail
