#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace nqf::record {

/// What every data set says of itself. `axes[d]` is the path (within the same scope) of the one-dimensional
/// data set that gives the coordinate along dimension d, attached as an HDF5 dimension scale; empty: none.
struct DataInfo {
  std::string units;  ///< "1" if dimensionless
  std::string description;
  std::vector<std::string> axes = {};
};

enum class ColumnType { real, integer, flag };  ///< double, int64, uint8

/// One entry of a row: a number that remembers what it was.
class Value {
 public:
  template <std::integral T>
  Value(T value)
      : kind_(std::same_as<T, bool> ? Kind::flag : Kind::integer), integer_(static_cast<std::int64_t>(value)) {}
  template <std::floating_point T>
  Value(T value) : kind_(Kind::real), real_(static_cast<double>(value)) {}

 private:
  friend class Table;
  enum class Kind { real, integer, flag };
  Kind kind_;
  double real_ = 0.0;
  std::int64_t integer_ = 0;
};

class ResultFileImpl;

/// The data sets of one HDF5 group that grow together, a row at a time: columns of T numbers, and matrices
/// n × T that get a column of n numbers with each row (axis 1 grows). Belongs to its ResultFile.
/// - Layout: values of columns are taken from the root, those of a matrix from all ranks in rank order.
/// - Collective, but for rows(); all ranks append the same number of rows.
/// - Rows reach the file with ResultFile::flush() or close(), or when some hundred have gathered; appending
///   allocates nothing.
/// - Errors: RunError on every rank, naming the file; std::logic_error for a misuse.
class Table {
 public:
  Table(ResultFileImpl& file, std::string prefix, const std::string& path);  ///< use Scope::table
  ~Table();
  Table(const Table&) = delete;
  Table& operator=(const Table&) = delete;

  /// Adds a column, or takes up the one of a reopened file. Its place in append() is the order of definition.
  void define_column(const std::string& name, ColumnType type, const DataInfo& info);
  /// Adds a matrix of doubles with `local_rows` of its rows on this rank.
  void define_matrix(const std::string& name, std::int64_t local_rows, const DataInfo& info);

  /// Appends a row: `values` of the columns, and this rank's part of each matrix. An integer may fill a
  /// column of doubles, not the reverse. Values of ranks other than the root are ignored, but must be as
  /// many.
  void append(std::span<const Value> values, std::span<const std::span<const double>> matrices = {});
  void append(std::initializer_list<Value> values, std::initializer_list<std::span<const double>> matrices = {}) {
    append(std::span(values.begin(), values.size()), std::span(matrices.begin(), matrices.size()));
  }

  /// Rows appended so far, those still in memory included. Not collective.
  std::int64_t rows() const noexcept;
  /// Forgets all rows from `n_rows` on. @throws std::logic_error if there are fewer
  void truncate(std::int64_t n_rows);
  void write_pending();  ///< without a flush

 private:
  friend class ResultFileImpl;
  struct Column;
  void take_up(std::unique_ptr<Column> column, const DataInfo& info);
  void make_buffers();
  void write_column(Column& column);
  void reload_length();
  ResultFileImpl& file_;
  std::string prefix_;  // the scope, in which axes are named
  std::string path_;
  std::vector<std::unique_ptr<Column>> columns_;
  std::int64_t written_ = 0;
  std::int64_t pending_ = 0;
  std::int64_t capacity_ = 0;  // rows that fit the buffers
};

}  // namespace nqf::record
