#pragma once

#include <cstddef>

// What the benchmarks compare rota with: plain MPI, a bare ring, and a gate that opens for tasks on other ranks. They
// work beside rota, in the same processes: its tasks drive the other rank's end.
namespace bench {

// Initialises MPI and makes a communicator and shared memory for what follows; MPI is finalized when the process
// exits. Collective, before rota::init. Returns the seconds that MPI_Init_thread took.
double open_peers(int& argc, char**& argv);

// Ranks that MPI counts.
int rank_count();
// 1, or 2 for more.
int node_count();

// Seconds of an 8-byte MPI_Send/MPI_Recv round trip between ranks 0 and 1. Rank 0 calls.
double mpi_roundtrip(int rounds);

// Seconds of an 8-byte MPI message from rank 1 to rank 2 or back. Rank 0 calls.
double mpi_hop(int rounds);

// Calls a second that rank 0 gets answered by rank 1 over two rings of mpi/mailbox.h, with a map of what is in flight,
// at most `window`, and nothing else.
double ring_calls(std::size_t calls, std::size_t window);

// A task that calls wait_at_gate, on any rank, ends after rank 0 has called open_gate.
void close_gate();
void open_gate();
int wait_at_gate();

}  // namespace bench
