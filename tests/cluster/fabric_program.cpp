// fabric_program RINGS ROUNDS: the fabric of MPI's puts alone. Each rank sends batches to every rank of another node,
// and a large transfer now and then, with only RINGS rings for all who write to one rank. Exit status 0 if all came
// whole and in order.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

#include "mpi/fabric.h"
#include "mpi/rma_settings.h"
#include "mpi/world.h"

namespace {

using namespace rota;
using clock_type = std::chrono::steady_clock;

constexpr std::size_t transfer_bytes = 20'000'000, transfer_pieces = 3;

struct traffic final : mpi::fabric::listener {
  std::map<rank_t, std::uint64_t> came;
  std::map<std::uint64_t, bool> transferred;
  std::map<rank_t, std::size_t> pieces;
  std::size_t sent_whole = 0;

  void batch(rank_t from, bytes_view bytes) override {
    base::cursor cursor(bytes);
    const auto number = cursor.get<std::uint64_t>();
    if (number != came[from]++) throw std::logic_error("a batch is not the next one");
    for (std::byte b : bytes.subspan(sizeof number)) {
      if (b != static_cast<std::byte>(number)) throw std::logic_error("a batch is damaged");
    }
  }
  void received(std::uint64_t number, bool whole) override { transferred[number] = whole; }
  void heard(rank_t from) override { ++pieces[from]; }
  void sent(rank_t, std::uint64_t, bool whole) override { sent_whole += whole ? 1 : 0; }
  void broken(rank_t peer, const std::string& why) override {
    throw std::runtime_error("lost rank " + std::to_string(peer) + ": " + why);
  }
};

class patience {
 public:
  void wait(mpi::fabric& way, traffic& heard) {
    way.poll();
    if (way.take(heard)) until_ = clock_type::now() + longest;
    if (clock_type::now() > until_) throw std::runtime_error("no news for 30 s");
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }

 private:
  static constexpr auto longest = std::chrono::seconds(30);
  clock_type::time_point until_ = clock_type::now() + longest;
};

void run(const mpi::world& world, std::size_t rings, std::uint64_t rounds) {
  std::vector<rank_t> far;
  for (rank_t r = 0; r < world.size(); ++r) {
    if (world.facts(r).node != world.node()) far.push_back(r);
  }
  mpi::fabric_options options;
  options.cookie = 42;
  options.self = world.rank();
  options.peer_rings = rings;
  const auto way = mpi::open_rma(world, options);
  mpi::check_fabric(*way, world, clock_type::now() + std::chrono::seconds(15));
  (void)world.allgather("");  // nobody sends before all were heard

  traffic heard;
  std::mt19937 random(world.rank());
  std::map<rank_t, std::vector<std::byte>> into;
  for (rank_t r : far) {
    into[r].resize(transfer_bytes);
    way->expect(r, r, into[r]);
  }
  std::vector<std::byte> large(transfer_bytes, static_cast<std::byte>(world.rank()));
  patience patient;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (rank_t r : far) {
      base::buffer batch = way->spare();
      batch.put(round);
      const std::size_t size = random() % 16 == 0 ? 100'000 : random() % 500;
      std::memset(batch.extend(size), static_cast<int>(round), size);
      way->send(r, std::move(batch));
      if (round == rounds / 2) way->send_bulk(r, world.rank(), large);
    }
    do {
      patient.wait(*way, heard);
    } while (way->unsent() > 200'000);
  }
  const auto all_here = [&] {
    if (heard.transferred.size() < far.size() || heard.sent_whole < far.size() || way->unsent() > 0) return false;
    for (rank_t r : far) {
      if (heard.came[r] < rounds) return false;
    }
    return true;
  };
  while (!all_here()) patient.wait(*way, heard);
  for (rank_t r : far) {
    if (heard.pieces[r] != transfer_pieces) throw std::logic_error("a piece came without a word of its sender");
    for (std::byte b : into[r]) {
      if (b != static_cast<std::byte>(r) || !heard.transferred[r]) throw std::logic_error("a transfer is damaged");
    }
  }
  world.meet(std::chrono::seconds(30), [&] { way->poll(); });  // others may still wait for this rank's rings
  way->close(clock_type::now() + std::chrono::seconds(10));
}

}  // namespace

int main(int argc, char** argv) {
  try {
    mpi::prepare_rma();
    const auto world = mpi::world::start(argc, argv);
    run(*world, std::strtoul(argv[1], nullptr, 10), std::strtoull(argv[2], nullptr, 10));
    world->finish(std::chrono::seconds(10));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    std::_Exit(1);
  }
}
