#include "nqf/record/result_file.hpp"

#include <hdf5_hl.h>

#include <filesystem>

#include "nqf/parallel/errors.hpp"
#include "record/agree.hpp"
#include "record/dataset_io.hpp"
#include "record/result_file_impl.hpp"
#include "record/space.hpp"

namespace nqf::record {

std::string join(const std::string& prefix, const std::string& path) {
  if (path.empty()) return prefix;
  return path.front() == '/' ? prefix + path : prefix + "/" + path;
}

int growing_axis(hid_t dataset) {
  const h5::Dataspace space(h5_check(H5Dget_space(dataset), "H5Dget_space"));
  hsize_t limits[H5S_MAX_RANK];
  const int n = H5Sget_simple_extent_dims(space.get(), nullptr, limits);
  for (int d = 0; d < n; ++d)
    if (limits[d] == H5S_UNLIMITED) return d;
  return -1;
}

ResultFileImpl::ResultFileImpl(const parallel::Comm& comm, const std::string& path, bool create)
    : comm_(comm.duplicate()), path_(path) {
  h5::silence();
  agree(comm_, path_, [&] {
    const auto access = h5::parallel_access(comm_);
    if (!create) {
      file_.reset(h5_check(H5Fopen(path.c_str(), H5F_ACC_RDWR, access.get()), "H5Fopen"));
      return;
    }
    file_.reset(h5_check(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, access.get()), "H5Fcreate"));
  });
  note_size();
  changed_ = create;
  // A file that was never flushed has no signature: nothing could read it after a kill.
  if (create) flush();
}

ResultFileImpl::~ResultFileImpl() {
  try {
    if (file_ && !failed_) close();
  } catch (...) {  // NOLINT(bugprone-empty-catch): close() is where errors are reported
  }
  tables_.clear();
  if (file_ && H5Fclose(file_.release()) < 0) note_broken();
}

void ResultFileImpl::reserve(std::int64_t bytes) {
  parallel::on_root(comm_, [&] {
    promised_ += bytes + metadata_allowance;
    if (flushed_size_ + promised_ <= reserved_) return;
    const auto size = flushed_size_ + promised_ + reserve_ahead;
    try {
      reserve_space(path_, size);
    } catch (const RunError& error) {
      throw RunError(path_ + ": " + error.what());
    }
    reserved_ = size;
  });
}

void ResultFileImpl::note_size() {
  if (!comm_.is_root()) return;
  // HDF5 cuts the file to its true size when it flushes, if that size has changed since.
  std::error_code error;
  const auto size = static_cast<std::int64_t>(std::filesystem::file_size(path_, error));
  if (error) return;
  promised_ = 0;
  if (size == reserved_) return;
  flushed_size_ = reserved_ = size;
}

void ResultFileImpl::attempt(const std::function<void()>& work, bool writes) {
  if (failed_) throw RunError(path_ + ": not usable after an earlier error");
  if (!file_) throw std::logic_error(path_ + ": used after it was closed");
  try {
    agree(comm_, path_, work);
  } catch (const DesertedError&) {
    failed_ = true;
    (void)file_.release();  // closing is collective, and the others are elsewhere
    throw;
  } catch (const RunError& error) {
    failed_ = true;
    throw RunError(writes && comm_.is_root() ? with_reason(error.what(), path_) : error.what());
  }
}

void ResultFileImpl::look(const std::function<void()>& work) {
  attempt(work, false);
}

void ResultFileImpl::run(std::int64_t bytes, const std::function<void()>& work) {
  changed_ = true;
  if (!failed_ && file_) reserve(bytes);
  attempt(work, true);
}

void ResultFileImpl::describe(hid_t dataset, const std::string& own_path, const std::string& prefix,
                              const DataInfo& info) {
  h5::set_attribute(dataset, "units", std::string_view(info.units));
  h5::set_attribute(dataset, "description", std::string_view(info.description));
  for (std::size_t d = 0; d < info.axes.size(); ++d) {
    const auto axis_path = join(prefix, info.axes[d]);
    if (info.axes[d].empty() || axis_path == own_path) continue;
    const h5::Dataset axis(h5_check(H5Dopen2(file_.get(), axis_path.c_str(), H5P_DEFAULT), "H5Dopen2"));
    const auto name = axis_path.substr(axis_path.find_last_of('/') + 1);
    if (h5_check(H5DSis_scale(axis.get()), "H5DSis_scale") == 0)
      h5_check(H5DSset_scale(axis.get(), name.c_str()), "H5DSset_scale");
    const auto dimension = static_cast<unsigned>(d);
    if (h5_check(H5DSis_attached(dataset, axis.get(), dimension), "H5DSis_attached") == 0)
      h5_check(H5DSattach_scale(dataset, axis.get(), dimension), "H5DSattach_scale");
  }
}

Table& ResultFileImpl::table(const std::string& prefix, const std::string& path) {
  auto& slot = tables_[join(prefix, path)];
  if (!slot) slot = std::make_unique<Table>(*this, prefix, path);
  return *slot;
}

void ResultFileImpl::write_pending(const std::string& path) {
  for (auto& [name, table] : tables_)
    if (path.empty() || (name + "/").starts_with(path + "/") || path.starts_with(name + "/")) table->write_pending();
}

void ResultFileImpl::reload_tables() {
  look([&] {
    for (auto& [name, table] : tables_) table->reload_length();
  });
}

void ResultFileImpl::flush() {
  write_pending("");
  if (!changed_) return;  // a file that was only looked at keeps its bytes
  run(0, [&] { h5_check(H5Fflush(file_.get(), H5F_SCOPE_GLOBAL), "H5Fflush"); });
  changed_ = false;
  note_size();
}

void ResultFileImpl::close() {
  flush();
  tables_.clear();
  attempt(
      [&] {
        const auto result = H5Fclose(file_.release());
        if (result < 0) note_broken();
        h5_check(result, "H5Fclose");
      },
      true);
  // The space reserved ahead is still behind the end: HDF5 cuts it off when the file is opened and closed once more. If
  // it cannot (a reader has locked the file), it does so next time.
  parallel::on_root(comm_, [&] { (void)h5::File(H5Fopen(path_.c_str(), H5F_ACC_RDWR, H5P_DEFAULT)); });
}

ResultFile::ResultFile(std::unique_ptr<ResultFileImpl> impl) : impl_(std::move(impl)) {}
ResultFile::ResultFile(ResultFile&&) noexcept = default;
ResultFile& ResultFile::operator=(ResultFile&&) noexcept = default;
ResultFile::~ResultFile() = default;

ResultFile ResultFile::create(const parallel::Comm& comm, const std::string& path) {
  return ResultFile(std::make_unique<ResultFileImpl>(comm, path, true));
}
ResultFile ResultFile::open(const parallel::Comm& comm, const std::string& path) {
  return ResultFile(std::make_unique<ResultFileImpl>(comm, path, false));
}

Scope ResultFile::scope(const std::string& prefix) {
  return Scope(impl_.get(), join("", prefix == "/" ? "" : prefix));
}
const std::string& ResultFile::path() const noexcept {
  return impl_->path();
}
void ResultFile::flush() {
  impl_->flush();
}
void ResultFile::close() {
  impl_->close();
}

}  // namespace nqf::record
