#include "apps/kmers/sequence_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <filesystem>
#include <fstream>

#include "apps/kmers/chunk_reader.h"
#include "apps/kmers/output_file.h"
#include "apps/kmers/runs.h"

namespace kmers {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

std::string gzip(const std::string& text) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) throw std::bad_alloc();
  std::string packed(deflateBound(&stream, text.size()) + 32, '\0');
  std::string input = text;
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

class sequence_files : public testing::Test {
 protected:
  sequence_files() {
    std::string name = (fs::temp_directory_path() / "kmers_test_XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~sequence_files() override { fs::remove_all(folder_); }

  std::string file(const std::string& content, const std::string& name = "x") {
    const std::string path = (folder_ / name).string();
    std::ofstream(path, std::ios::binary) << content;
    return path;
  }

  // All letters of a file with this content, read `step` letters at a time.
  std::string read(const std::string& content, std::size_t step = 1000) {
    sequence_reader reader(file(content));
    std::string all;
    while (reader.read(all, all.size() + step)) {
    }
    return all;
  }

  // What reading this content complains about; empty if nothing.
  std::string complaint(const std::string& content) {
    try {
      read(content);
    } catch (const input_error& error) {
      EXPECT_THAT(error.what(), testing::StartsWith((folder_ / "x").string() + ": "));
      EXPECT_THAT(error.what(), testing::Not(HasSubstr("\n")));
      return error.what();
    }
    return "";
  }

  std::vector<kmer_count> count_in_chunks(const std::vector<std::string>& files, std::size_t chunk, int k) {
    chunk_reader reader(files, chunk, k);
    std::vector<kmer_code> codes;
    while (const auto bases = reader.next()) append_canonical(*bases, k, codes);
    return count_codes(codes, k);
  }

  fs::path folder_;
};

const std::string fasta = ">one x\nACGT\nAC\n>two\n\nGGT\n";
const std::string fastq = "@one\nACGT\n+one\n@+>I\n@two\nGG\n+\nII\n";

TEST_F(sequence_files, fasta_lines_join_and_records_end) {
  EXPECT_EQ(read(fasta), "ACGTAC\nGGT\n");
  EXPECT_EQ(read(">one\nACGT"), "ACGT\n");
  EXPECT_EQ(read("\n>one\n>two\nA\n"), "\nA\n");
}

TEST_F(sequence_files, fastq_qualities_are_no_sequence) {
  EXPECT_EQ(read(fastq), "ACGT\nGG\n");
  EXPECT_EQ(read("@one\nAC\n+\nII"), "AC\n");
  EXPECT_EQ(read("@empty\n\n+\n\n@two\nA\n+\nI\n\n"), "\nA\n");
}

TEST_F(sequence_files, all_line_ends_read_the_same) {
  for (const std::string& content : {fasta, fastq}) {
    std::string dos, mac;
    for (char c : content) {
      if (c == '\n') dos += '\r';
      dos += c;
      mac += c == '\n' ? '\r' : c;
    }
    EXPECT_EQ(read(dos), read(content));
    EXPECT_EQ(read(mac), read(content));
  }
}

TEST_F(sequence_files, the_size_of_a_read_changes_nothing) {
  for (std::size_t step : {1, 2, 3, 5}) {
    EXPECT_EQ(read(fasta, step), "ACGTAC\nGGT\n");
    EXPECT_EQ(read(fastq, step), "ACGT\nGG\n");
  }
}

TEST_F(sequence_files, gzip_of_one_or_several_members_is_unpacked) {
  EXPECT_EQ(read(gzip(fasta)), read(fasta));
  EXPECT_EQ(read(gzip(fasta.substr(0, 9)) + gzip("") + gzip(fasta.substr(9))), read(fasta));
  EXPECT_EQ(read(gzip(fasta) + std::string(100, '\0')), read(fasta));
}

TEST_F(sequence_files, every_truncation_of_a_gzip_file_is_noticed) {
  const std::string first = gzip(fasta);
  const std::string packed = first + gzip(fasta);
  for (std::size_t size = 0; size < packed.size(); ++size) {
    if (size == first.size()) continue;  // a whole file of one member
    EXPECT_NE(complaint(packed.substr(0, size)), "") << size;
  }
  EXPECT_THAT(complaint(packed.substr(0, packed.size() - 3)), HasSubstr("truncated .gz file"));
}

TEST_F(sequence_files, damaged_gzip_files_are_noticed) {
  std::string packed = gzip(fasta);
  EXPECT_THAT(complaint(packed + "more"), HasSubstr("bytes behind its end"));
  packed[packed.size() - 6] ^= 1;  // the check sum
  EXPECT_THAT(complaint(packed), HasSubstr("damaged .gz file"));
}

TEST_F(sequence_files, what_is_not_fasta_or_fastq_is_refused) {
  EXPECT_THAT(complaint(""), HasSubstr("not FASTA or FASTQ (the file is empty)"));
  EXPECT_THAT(complaint("\n\n"), HasSubstr("not FASTA or FASTQ"));
  EXPECT_THAT(complaint("ACGT\n"), HasSubstr("not FASTA or FASTQ (begins with 'A'"));
  EXPECT_THAT(complaint(std::string("\0\1", 2)), HasSubstr("begins with byte 0x00"));
  EXPECT_THAT(complaint(">x\nAC\nA7\n"), HasSubstr("line 3 has '7' in a sequence"));
  EXPECT_THAT(complaint(gzip("1,2,3\n")), HasSubstr("begins with '1'"));
}

TEST_F(sequence_files, broken_fastq_records_are_refused_with_their_line) {
  EXPECT_THAT(complaint("@x\nACGT\n+\nIII\n"), HasSubstr("line 4: 3 qualities for 4 bases"));
  EXPECT_THAT(complaint("@x\nACGT\nIIII\n"), HasSubstr("line 3: the third line"));
  EXPECT_THAT(complaint("@x\nAC\n+\nII\nACGT\n"), HasSubstr("line 5: a FASTQ record must begin with @"));
  EXPECT_THAT(complaint("@x\nACGT\n+\n"), HasSubstr("ends inside a FASTQ record"));
  EXPECT_THAT(complaint("@x\nACGT"), HasSubstr("ends inside a FASTQ record"));
  EXPECT_THAT(complaint("@x"), HasSubstr("ends inside a FASTQ record"));
}

TEST_F(sequence_files, files_that_cannot_be_read_say_why) {
  EXPECT_THROW(sequence_reader((folder_ / "none").string()), input_error);
  EXPECT_THROW(check_begins_as_sequences(folder_.string()), input_error);
}

TEST_F(sequence_files, chunks_lose_no_kmer_and_make_none) {
  std::string record = ">a\n";
  for (unsigned i = 0; i < 500; ++i) record += "ACGTN"[(i * i + i / 7) % 5];
  const std::string a = file(record + "\n>short\nACG\n>b\nGATTACAGATTACA\n", "a");
  const std::string b = file("@r\nGATTACA\n+\nIIIIIII\n", "b");
  for (int k : {1, 2, 5, 7, 31}) {
    const auto whole = count_in_chunks({a, b}, 1'000'000, k);
    for (std::size_t chunk : {1, 2, 3, 7, 31, 100}) EXPECT_EQ(count_in_chunks({a, b}, chunk, k), whole) << k;
  }
}

TEST_F(sequence_files, no_kmer_spans_records_or_files) {
  const std::string a = file(">a\nAC\n>b\nGT\n", "a");
  for (std::size_t chunk : {1, 2, 3, 4, 100}) EXPECT_TRUE(count_in_chunks({a, a}, chunk, 3).empty());
}

TEST_F(sequence_files, an_output_file_is_there_whole_or_not_at_all) {
  const std::string path = (folder_ / "out").string();
  {
    check_writable(path);
    output_file out(path);
    out.write("lost");
  }
  EXPECT_TRUE(fs::is_empty(folder_));
  output_file out(path);
  out.write("kept");
  EXPECT_FALSE(fs::exists(path));
  out.commit();
  EXPECT_EQ(fs::file_size(path), 4U);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), {}), 1);
}

TEST_F(sequence_files, a_place_that_cannot_be_written_is_refused) {
  EXPECT_THROW(check_writable((folder_ / "none" / "out").string()), input_error);
  EXPECT_THROW(check_writable(folder_.string()), input_error);
  check_writable("/dev/null");
  output_file full("/dev/full");
  full.write("x");
  EXPECT_THROW(full.commit(), input_error);
  EXPECT_TRUE(fs::exists("/dev/full"));
}

}  // namespace
}  // namespace kmers
