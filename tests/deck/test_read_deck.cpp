#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "deck/decks.hpp"
#include "support/world.hpp"

using namespace nqf;
using namespace nqf::deck;
using nqf::test::error_of;
using nqf::test::modes_deck;
using nqf::test::world;

namespace {

/// A folder of the root's, gone with the test; all ranks know its name.
class Folder {
 public:
  Folder() {
    name_ = (std::filesystem::temp_directory_path() / ("nqf_test_deck_" + std::to_string(getpid()))).string();
    world().broadcast(name_);
    if (world().is_root()) std::filesystem::create_directories(name_);
  }
  ~Folder() {
    world().barrier();
    std::error_code ignored;
    if (world().is_root()) std::filesystem::remove_all(name_, ignored);
  }
  std::string write(const std::string& file, const std::string& text) const {
    if (world().is_root()) std::ofstream(name_ + "/" + file, std::ios::binary) << text;
    return name_ + "/" + file;
  }
  const std::string& name() const { return name_; }

 private:
  std::string name_;
};

std::string reading_error(const std::string& path) {
  try {
    read_deck(world(), path, {});
  } catch (const DeckError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST(ReadDeck, EveryRankGetsTheSameDeckFromTheRoot) {
  const Folder folder;
  const std::string text = modes_deck + "modes.count = 2\n[output]\npath_events = 5\n";
  const std::string path = folder.write("deck.toml", text);
  const DeckFile file = read_deck(world(), path, {"time.end=12"});
  EXPECT_EQ(file.path, path);
  EXPECT_EQ(file.text, text);
  ASSERT_EQ(file.cases.size(), 1u);
  EXPECT_EQ(file.cases[0].time.end, 12.0);
  EXPECT_EQ(file.cases[0].output.path_events, 5);
  EXPECT_EQ(file.cases[0].case_name, "");
}

TEST(ReadDeck, FilesStartInTheDecksFolder) {
  const Folder folder;
  const std::string path = folder.write("deck.toml", "system.kind = 'modes'\nmodes.file = 'm.h5'\ntime.end = 1\n");
  EXPECT_EQ(read_deck(world(), path, {}).cases.at(0).modes.file, folder.name() + "/m.h5");
}

TEST(ReadDeck, WithoutAFolderFilesStartInTheWorkingFolder) {
  const std::string text = "system.kind = 'modes'\nmodes.file = 'm.h5'\ntime.end = 1\n";
  const std::string expected = (std::filesystem::current_path() / "m.h5").string();
  for (const std::string name : {"", "deck.toml", "./deck.toml"}) {
    EXPECT_EQ(parse_deck(text, name, {}).cases.at(0).modes.file, expected) << name;
  }
}

TEST(ReadDeck, ByteOrderMarkAndCarriageReturnsAreAccepted) {
  std::string crlf = "\xEF\xBB\xBF";
  for (const char c : modes_deck + "# ü\n[solver]\nrtol = 0\n")
    crlf += c == '\n' ? std::string("\r\n") : std::string(1, c);
  const Folder folder;
  const DeckFile file = read_deck(world(), folder.write("dos.toml", crlf), {});
  EXPECT_EQ(file.text, crlf);
  EXPECT_EQ(file.cases.at(0).time.end, 30.0);
  EXPECT_EQ(error_of(crlf + "rtoll = 1\r\n"), "deck.toml:9: [solver] rtoll: unknown key, did you mean rtol?");
}

TEST(ReadDeck, WhatIsNoReadableFileIsNamedOnEveryRank) {
  const Folder folder;
  EXPECT_EQ(reading_error(folder.name()), folder.name() + ": is a directory, not a deck");
  EXPECT_EQ(reading_error(folder.name() + "/none.toml"),
            folder.name() + "/none.toml: cannot be read: No such file or directory");
  // The first page of a process is mapped nowhere: opening works, reading does not.
  if (std::filesystem::exists("/proc/self/mem")) {
    EXPECT_EQ(reading_error("/proc/self/mem"), "/proc/self/mem: cannot be read: Input/output error");
  }
}

TEST(ReadDeck, SyntaxErrorsNameTheLineAndTheReason) {
  const std::string message = error_of("[system]\nkind = \"modes\n");
  EXPECT_EQ(message.substr(0, 44), "deck.toml:2: not valid TOML: Error while par") << message;
  EXPECT_EQ(error_of("[time]\nend = 1\nend = 2\n").substr(0, 29), "deck.toml:3: not valid TOML: ");
  EXPECT_EQ(error_of("title = '\xFF'\n").substr(0, 29), "deck.toml:1: not valid TOML: ");
  EXPECT_EQ(error_of("").substr(0, 41), "deck.toml: [system] kind: missing, but re");
}
