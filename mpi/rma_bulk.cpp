// Bulk transfers: the receiver posts the receive of a piece and grants it, the sender then sends it.
#include <algorithm>

#include "mpi/rma_fabric.h"

namespace rota::mpi {
namespace {

// Pieces, so that none holds up others for long; large ones, since a grant may wait for a look of the sender.
constexpr std::size_t most_granted = std::size_t{8} << 20;

}  // namespace

void rma_fabric::expect(rank_t from, std::uint64_t number, std::span<std::byte> into) {
  expected& e = expected_[number];
  e = {.from = from, .into = into, .left = into.size(), .failed = peers_[from]->broken};
  if (e.left > 0 && !e.failed) to_grant_.push_back(number);
  settle(number);
  grant_pieces();
}

// Transfers have slots in turn.
void rma_fabric::grant_pieces() {
  for (std::uint32_t i = 0; i < slots_.size() && !to_grant_.empty(); ++i) {
    slot& free = slots_[i];
    if (free.request != MPI_REQUEST_NULL) continue;
    const std::uint64_t number = to_grant_.front();
    to_grant_.pop_front();
    auto found = expected_.find(number);
    if (found == expected_.end() || found->second.failed) continue;
    expected& e = found->second;
    const std::span<std::byte> piece = e.into.subspan(e.granted, std::min(most_granted, e.into.size() - e.granted));
    const int size = static_cast<int>(piece.size());
    peer& p = *peers_[e.from];
    const int rc = MPI_Irecv(piece.data(), size, MPI_BYTE, static_cast<int>(e.from), tag_piece + static_cast<int>(i),
                             comm_, &free.request);
    if (rc != MPI_SUCCESS) {
      free.request = MPI_REQUEST_NULL;
      fail(p, rc, "MPI_Irecv");
      continue;
    }
    free.number = number;
    free.size = piece.size();
    ++e.pending;
    tell(p, {.what = control::kind::piece,
             .which = i,
             .size = static_cast<std::uint32_t>(size),
             .number = number,
             .offset = e.granted});
    e.granted += piece.size();
    if (e.granted < e.into.size()) to_grant_.push_back(number);
  }
}

void rma_fabric::send_bulk(rank_t to, std::uint64_t number, bytes_view bytes) {
  peer& p = *peers_[to];
  bulk& b = bulks_[{to, number}];
  b.bytes = bytes;
  b.given = true;
  b.left = bytes.size();
  b.failed = p.broken;
  for (const control& grant : std::exchange(b.granted, {})) send_piece(p, b, grant);
  settle(bulk_key{to, number});
}

void rma_fabric::send_piece(peer& p, bulk& b, const control& grant) {
  if (p.gone() || grant.offset > b.bytes.size() || grant.size > b.bytes.size() - grant.offset) return;
  const std::byte* from = b.bytes.data() + grant.offset;
  sending s{MPI_REQUEST_NULL, {p.rank, grant.number}, grant.size};
  const int rc = MPI_Isend(from, static_cast<int>(grant.size), MPI_BYTE, static_cast<int>(p.rank),
                           tag_piece + static_cast<int>(grant.which), comm_, &s.request);
  if (rc != MPI_SUCCESS) return fail(p, rc, "MPI_Isend");
  ++b.pending;
  sending_.push_back(s);
}

// True if some piece has come or gone.
bool rma_fabric::poll_pieces() {
  bool any = false;
  for (slot& s : slots_) {
    if (s.request == MPI_REQUEST_NULL) continue;
    int done = 0;
    const int rc = MPI_Test(&s.request, &done, MPI_STATUS_IGNORE);
    if (rc == MPI_SUCCESS && done == 0) continue;
    any = true;
    s.request = MPI_REQUEST_NULL;
    expected& e = expected_.find(s.number)->second;
    --e.pending;
    if (rc != MPI_SUCCESS) fail(*peers_[e.from], rc, "MPI_Irecv");
    if (rc == MPI_SUCCESS && !e.failed) {  // what was cancelled counts as failed
      e.left -= s.size;
      events_.heard(e.from);
    }
    settle(s.number);
  }
  std::erase_if(sending_, [&](sending& s) {
    int done = 0;
    const int rc = MPI_Test(&s.request, &done, MPI_STATUS_IGNORE);
    if (rc == MPI_SUCCESS && done == 0) return false;
    any = true;
    bulk& b = bulks_.find(s.key)->second;
    --b.pending;
    if (rc != MPI_SUCCESS) fail(*peers_[s.key.first], rc, "MPI_Isend");
    if (rc == MPI_SUCCESS) b.left -= s.size;
    settle(s.key);
    return true;
  });
  if (any) grant_pieces();
  return any;
}

// Ends a transfer to this rank once nothing of it is under way.
void rma_fabric::settle(std::uint64_t number) {
  auto found = expected_.find(number);
  const expected& e = found->second;
  if (e.pending > 0 || (e.left > 0 && !e.failed)) return;
  events_.received(number, e.left == 0);
  expected_.erase(found);
}

// The same for one from here.
void rma_fabric::settle(const bulk_key& key) {
  auto found = bulks_.find(key);
  const bulk& b = found->second;
  if (b.pending > 0 || (b.left > 0 && !b.failed)) return;
  if (b.given) events_.sent(key.first, key.second, b.left == 0);
  bulks_.erase(found);
}

// Pieces that were granted already will not come, and the sender has to hear that no more will be.
void rma_fabric::forget(rank_t from, std::uint64_t number) {
  auto found = expected_.find(number);
  if (found == expected_.end()) return;
  found->second.failed = true;
  tell(*peers_[from], {.what = control::kind::forgotten, .number = number});
  for (slot& s : slots_) {
    if (s.request != MPI_REQUEST_NULL && s.number == number) MPI_Cancel(&s.request);
  }
  settle(number);
}

// A piece that is under way keeps its memory until MPI is done with it.
void rma_fabric::break_bulk(rank_t who) {
  std::vector<std::uint64_t> numbers;
  for (auto& [number, e] : expected_) {
    if (e.from != who) continue;
    e.failed = true;
    numbers.push_back(number);
  }
  for (slot& s : slots_) {
    const bool theirs = std::find(numbers.begin(), numbers.end(), s.number) != numbers.end();
    if (s.request != MPI_REQUEST_NULL && theirs) MPI_Cancel(&s.request);
  }
  for (std::uint64_t number : numbers) settle(number);
  std::vector<bulk_key> keys;
  for (auto& [key, b] : bulks_) {
    if (key.first != who) continue;
    b.failed = true;
    keys.push_back(key);
  }
  for (const bulk_key& key : keys) settle(key);
}

}  // namespace rota::mpi
