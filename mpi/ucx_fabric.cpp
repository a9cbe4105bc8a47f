#include "mpi/ucx_fabric.h"

#include <rota/error.h>

#include <cstring>
#include <thread>

namespace rota::mpi {
namespace {

constexpr unsigned batch_id = 0, piece_id = 1;
// Large transfers go in pieces, so that one can be given up, and none holds up for long what comes after it.
constexpr std::size_t piece_bytes = std::size_t{32} << 20;
constexpr int pieces_at_once = 2;

void check(ucs_status_t status, const char* call) {
  if (status != UCS_OK) throw error(std::string(call) + " failed: " + ucs_status_string(status));
}

ucp_request_param_t receive_params(void* user, ucp_am_recv_data_nbx_callback_t call) {
  ucp_request_param_t param{};
  // Always by callback, so that there is one way for a transfer to end.
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA | UCP_OP_ATTR_FLAG_NO_IMM_CMPL;
  param.user_data = user;
  param.cb.recv_am = call;
  return param;
}

ucp_request_param_t send_params(void* user, ucp_send_nbx_callback_t call) {
  ucp_request_param_t param{};
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.user_data = user;
  param.cb.send = call;
  return param;
}

bool by_rendezvous(const ucp_am_recv_param_t* param) { return (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0; }

}  // namespace

ucx_fabric::ucx_fabric(const fabric_options& options) : options_(options) {
  ucp_config_t* settings = nullptr;
  check(ucp_config_read(nullptr, nullptr, &settings), "ucp_config_read");
  ucs_status_t status = UCS_OK;
  if (!options.devices.empty()) status = ucp_config_modify(settings, "NET_DEVICES", options.devices.c_str());
  ucp_params_t params{};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.name = "rota";
  if (status == UCS_OK) status = ucp_init(&params, settings, &context_);
  ucp_config_release(settings);
  check(status, "ucp_init");

  ucp_worker_params_t worker{};
  worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  worker.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  check(ucp_worker_create(context_, &worker, &worker_), "ucp_worker_create");
  check(ucp_worker_get_efd(worker_, &event_fd_), "ucp_worker_get_efd");
  const auto handle = [this](unsigned id, ucp_am_recv_callback_t call) {
    ucp_am_handler_param_t handler{};
    handler.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    handler.id = id;
    handler.cb = call;
    handler.arg = this;
    check(ucp_worker_set_am_recv_handler(worker_, &handler), "ucp_worker_set_am_recv_handler");
  };
  handle(batch_id, on_batch);
  handle(piece_id, on_piece);

  ucp_address_t* address = nullptr;
  std::size_t length = 0;
  check(ucp_worker_get_address(worker_, &address, &length), "ucp_worker_get_address");
  address_.assign(reinterpret_cast<const char*>(address), length);
  ucp_worker_release_address(worker_, address);
}

void ucx_fabric::meet(std::vector<std::string> addresses) {
  peers_.resize(addresses.size());
  for (std::size_t i = 0; i < addresses.size(); ++i) peers_[i].address = std::move(addresses[i]);
}

// Null where there is none to be had.
ucp_ep_h ucx_fabric::endpoint(rank_t to) {
  peer& p = peers_[to];
  if (p.broken) return nullptr;
  if (p.ep != nullptr) return p.ep;
  ucp_ep_params_t params{};
  params.field_mask =
      UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE | UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(p.address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {on_broken, this};
  const ucs_status_t status = ucp_ep_create(worker_, &params, &p.ep);
  if (status == UCS_OK) return p.ep;
  p.ep = nullptr;
  broke(to, std::string("ucp_ep_create: ") + ucs_status_string(status));
  return nullptr;
}

void ucx_fabric::on_broken(void* arg, ucp_ep_h ep, ucs_status_t status) {
  auto& self = *static_cast<ucx_fabric*>(arg);
  for (rank_t r = 0; r < self.peers_.size(); ++r) {
    if (self.peers_[r].ep == ep) return self.broke(r, ucs_status_string(status));
  }
}

void ucx_fabric::broke(rank_t to, const std::string& why) {
  peer& p = peers_[to];
  if (std::exchange(p.broken, true)) return;
  if (p.ep != nullptr) to_close_.push_back(std::exchange(p.ep, nullptr));
  p.early.clear();
  if (!leaving_) events_.broken(to, why);
  std::vector<std::uint64_t> over;
  for (auto& [number, e] : expected_) {
    if (e.from != to) continue;
    e.failed = true;
    over.push_back(number);
  }
  for (std::uint64_t number : over) settle(number);
}

void ucx_fabric::send(rank_t to, base::buffer batch) {
  const ucp_ep_h ep = endpoint(to);
  if (ep == nullptr) return;
  peer& p = peers_[to];
  auto* out = new outgoing{*this, to, {options_.cookie, options_.self, p.next_out++}, std::move(batch)};
  p.unsent += out->bytes.size();
  unsent_ += out->bytes.size();
  const ucp_request_param_t param = send_params(out, [](void* request, ucs_status_t, void* user) {
    ucp_request_free(request);
    auto* done = static_cast<outgoing*>(user);
    done->owner.batch_sent(done);
  });
  const ucs_status_ptr_t request =
      ucp_am_send_nbx(ep, batch_id, &out->header, sizeof out->header, out->bytes.data(), out->bytes.size(), &param);
  if (request != nullptr && !UCS_PTR_IS_ERR(request)) return;
  batch_sent(out);
  if (request != nullptr) broke(to, ucs_status_string(UCS_PTR_STATUS(request)));
}

void ucx_fabric::batch_sent(outgoing* out) {
  peers_[out->to].unsent -= out->bytes.size();
  unsent_ -= out->bytes.size();
  events_.keep(std::move(out->bytes));
  delete out;
}

// Copied is not sent: UCX may keep the rest of a batch until the socket takes it.
void ucx_fabric::flush() {
  const ucp_request_param_t param = send_params(this, [](void* request, ucs_status_t, void* user) {
    ucp_request_free(request);
    --static_cast<ucx_fabric*>(user)->unsent_;
  });
  const ucs_status_ptr_t request = ucp_worker_flush_nbx(worker_, &param);
  if (request != nullptr && !UCS_PTR_IS_ERR(request)) ++unsent_;
}

ucs_status_t ucx_fabric::on_batch(void* arg, const void* header, std::size_t header_bytes, void* data, std::size_t size,
                                  const ucp_am_recv_param_t* param) {
  auto& self = *static_cast<ucx_fabric*>(arg);
  batch_header head{};
  if (header_bytes != sizeof head) return UCS_OK;
  std::memcpy(&head, header, sizeof head);
  if (head.cookie != self.options_.cookie || head.from >= self.peers_.size()) return UCS_OK;
  base::buffer bytes = self.spare();
  std::byte* into = bytes.extend(size);
  if (!by_rendezvous(param)) {
    std::memcpy(into, data, size);
    self.batch_came(head, std::move(bytes));
    return UCS_OK;
  }
  auto* in = new incoming{self, head, std::move(bytes)};
  const ucp_request_param_t fetch = receive_params(in, [](void* request, ucs_status_t status, std::size_t, void* user) {
    ucp_request_free(request);
    const std::unique_ptr<incoming> came(static_cast<incoming*>(user));
    if (status != UCS_OK) return came->owner.broke(came->header.from, ucs_status_string(status));
    came->owner.batch_came(came->header, std::move(came->bytes));
  });
  const ucs_status_ptr_t request = ucp_am_recv_data_nbx(self.worker_, data, into, size, &fetch);
  if (UCS_PTR_IS_ERR(request)) {
    self.broke(head.from, ucs_status_string(UCS_PTR_STATUS(request)));
    delete in;
  }
  return UCS_INPROGRESS;
}

void ucx_fabric::batch_came(const batch_header& header, base::buffer bytes) {
  peer& p = peers_[header.from];
  if (p.broken) return;
  if (header.sequence != p.next_in) {
    p.early.emplace(header.sequence, std::move(bytes));
    return;
  }
  for (;;) {
    ++p.next_in;
    events_.batch(header.from, std::move(bytes));
    auto next = p.early.find(p.next_in);
    if (next == p.early.end()) return;
    bytes = std::move(next->second);
    p.early.erase(next);
  }
}

void ucx_fabric::expect(rank_t from, std::uint64_t number, std::span<std::byte> into) {
  expected_[number] = {from, into, into.size(), 0, peers_[from].broken};
  settle(number);
}

void ucx_fabric::forget(rank_t, std::uint64_t number) {
  auto found = expected_.find(number);
  if (found == expected_.end()) return;
  found->second.failed = true;
  settle(number);
}

// Ends a transfer to this rank once nothing of it is under way.
void ucx_fabric::settle(std::uint64_t number) {
  auto found = expected_.find(number);
  const expected& e = found->second;
  if (e.pending > 0 || (e.left > 0 && !e.failed)) return;
  events_.received(number, !e.failed);
  expected_.erase(found);
}

ucs_status_t ucx_fabric::on_piece(void* arg, const void* header, std::size_t header_bytes, void* data, std::size_t size,
                                  const ucp_am_recv_param_t* param) {
  auto& self = *static_cast<ucx_fabric*>(arg);
  piece_header head{};
  if (header_bytes != sizeof head) return UCS_OK;
  std::memcpy(&head, header, sizeof head);
  auto found = self.expected_.find(head.number);
  if (head.cookie != self.options_.cookie || found == self.expected_.end()) return UCS_OK;  // given up
  expected& e = found->second;
  if (head.from != e.from || head.offset > e.into.size() || size > e.into.size() - head.offset) return UCS_OK;
  std::byte* into = e.into.data() + head.offset;
  ++e.pending;
  if (!by_rendezvous(param)) {
    std::memcpy(into, data, size);
    self.piece_came(head.number, size, true);
    return UCS_OK;
  }
  auto* piece = new incoming_piece{self, head.number, size};
  const ucp_request_param_t fetch =
      receive_params(piece, [](void* request, ucs_status_t status, std::size_t, void* user) {
        ucp_request_free(request);
        const std::unique_ptr<incoming_piece> came(static_cast<incoming_piece*>(user));
        came->owner.piece_came(came->number, came->size, status == UCS_OK);
      });
  const ucs_status_ptr_t request = ucp_am_recv_data_nbx(self.worker_, data, into, size, &fetch);
  if (UCS_PTR_IS_ERR(request)) {
    delete piece;
    self.piece_came(head.number, size, false);
  }
  return UCS_INPROGRESS;
}

void ucx_fabric::piece_came(std::uint64_t number, std::size_t size, bool whole) {
  expected& e = expected_.find(number)->second;
  --e.pending;
  if (whole) {
    e.left -= size;
    events_.heard(e.from);
  } else {
    e.failed = true;
  }
  settle(number);
}

void ucx_fabric::send_bulk(rank_t to, std::uint64_t number, bytes_view bytes) {
  const std::uint64_t key = ++next_bulk_;
  bulks_[key] = {to, number, bytes};
  push_pieces(key);
}

// Sends what may go next, or tells the end.
void ucx_fabric::push_pieces(std::uint64_t key) {
  bulk& b = bulks_.find(key)->second;
  while (b.pending < pieces_at_once && b.next < b.bytes.size() && !b.failed) {
    const ucp_ep_h ep = endpoint(b.to);
    if (ep == nullptr) {
      b.failed = true;
      break;
    }
    const bytes_view bytes = b.bytes.subspan(b.next, std::min(piece_bytes, b.bytes.size() - b.next));
    auto* piece = new outgoing_piece{*this, key, {options_.cookie, b.number, b.next, options_.self}};
    b.next += bytes.size();
    const ucp_request_param_t param = send_params(piece, [](void* request, ucs_status_t status, void* user) {
      ucp_request_free(request);
      const std::unique_ptr<outgoing_piece> gone(static_cast<outgoing_piece*>(user));
      gone->owner.piece_sent(gone->key, status == UCS_OK);
    });
    const ucs_status_ptr_t request =
        ucp_am_send_nbx(ep, piece_id, &piece->header, sizeof piece->header, bytes.data(), bytes.size(), &param);
    if (request != nullptr && !UCS_PTR_IS_ERR(request)) {
      ++b.pending;
      continue;
    }
    delete piece;
    if (request != nullptr) b.failed = true;
  }
  if (b.pending > 0 || (b.next < b.bytes.size() && !b.failed)) return;
  events_.sent(b.to, b.number, !b.failed);
  bulks_.erase(key);
}

void ucx_fabric::piece_sent(std::uint64_t key, bool whole) {
  bulk& b = bulks_.find(key)->second;
  --b.pending;
  if (!whole) b.failed = true;
  push_pieces(key);
}

bool ucx_fabric::poll() {
  constexpr int rounds = 16;
  for (int i = 0; i < rounds && ucp_worker_progress(worker_) != 0; ++i) ++moved_;
  for (ucp_ep_h ep : std::exchange(to_close_, {})) {
    ucp_request_param_t force{};
    force.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    force.flags = UCP_EP_CLOSE_FLAG_FORCE;
    const ucs_status_ptr_t request = ucp_ep_close_nbx(ep, &force);
    if (request != nullptr && !UCS_PTR_IS_ERR(request)) ucp_request_free(request);
  }
  return !events_.empty();
}

void ucx_fabric::close(std::chrono::steady_clock::time_point until) {
  leaving_ = true;
  std::vector<ucs_status_ptr_t> closing;
  for (peer& p : peers_) {
    if (p.ep == nullptr) continue;
    ucp_request_param_t flush{};
    const ucs_status_ptr_t request = ucp_ep_close_nbx(std::exchange(p.ep, nullptr), &flush);
    p.broken = true;
    if (request != nullptr && !UCS_PTR_IS_ERR(request)) closing.push_back(request);
  }
  while (!closing.empty() && std::chrono::steady_clock::now() < until) {
    ucp_worker_progress(worker_);
    std::erase_if(closing, [](ucs_status_ptr_t request) {
      if (ucp_request_check_status(request) == UCS_INPROGRESS) return false;
      ucp_request_free(request);
      return true;
    });
    if (!closing.empty()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  }
  if (!closing.empty()) return;  // the process ends soon, and with it the connections
  ucp_worker_destroy(worker_);
  ucp_cleanup(context_);
}

std::unique_ptr<fabric> open_ucx(const fabric_options& options) { return std::make_unique<ucx_fabric>(options); }
bool has_ucx() { return true; }

}  // namespace rota::mpi
