// Rows of observations.csv: the columns of `measured/README.md`. No CUDA here.
#pragma once

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

namespace probe {

// One figure. What has no column of its own stands in `condition` as `key=value` parts.
struct Row {
    std::string experiment;
    std::string implementation = "probe";
    std::string algorithm, protocol, channels;
    int ranks = 1;
    std::string flows;
    uint64_t size_bytes = 0;
    std::string dtype, placement;
    std::string condition;
    int run = 0;
    std::string metric;
    double value = 0;
    std::string unit;
    std::string note;
};

inline const char* header() {
    return "experiment,implementation,algorithm,protocol,channels,ranks,nodes,flows,size_bytes,"
           "dtype,placement,condition,run,metric,value,unit,confidence,note,source\n";
}

// A field as CSV wants it.
inline std::string quoted(const std::string& field) {
    if (field.find_first_of(",\"\n\r") == std::string::npos) return field;
    std::string out = "\"";
    for (char c : field) {
        if (c == '"') out += '"';
        out += c;
    }
    return out + "\"";
}

// Six digits are more than any of these figures has.
inline std::string figure(double value) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", value);
    return text;
}

inline std::string line(const Row& row) {
    const std::string fields[] = {
        row.experiment, row.implementation, row.algorithm, row.protocol, row.channels,
        std::to_string(row.ranks), "1", row.flows, std::to_string(row.size_bytes), row.dtype,
        row.placement, row.condition, std::to_string(row.run), row.metric, figure(row.value),
        row.unit, "measured", row.note, "probe"};
    std::string out;
    for (const std::string& field : fields) {
        if (!out.empty()) out += ',';
        out += quoted(field);
    }
    return out + "\n";
}

// Writes a file as a whole or not at all: beside it first, then renamed.
inline void write_file(const std::string& path, const std::string& text) {
    const std::string part = path + ".part";
    std::FILE* file = std::fopen(part.c_str(), "wb");
    if (!file) throw std::runtime_error("cannot write " + part + ": " + std::strerror(errno));
    const bool whole = std::fwrite(text.data(), 1, text.size(), file) == text.size();
    const bool closed = std::fclose(file) == 0;
    if (!whole || !closed || std::rename(part.c_str(), path.c_str()) != 0) {
        throw std::runtime_error("cannot write " + path + ": " + std::strerror(errno));
    }
}

// A line with more in its note, the field before the last, which is bare.
inline std::string noted(const std::string& line, const std::string& more) {
    const size_t last = line.rfind(',');
    if (more.empty() || last == std::string::npos) return line;
    const bool closed = line[last - 1] == '"';
    const std::string before = line.substr(0, closed ? last - 1 : last);
    const bool empty = !closed && before.back() == ',';
    return before + (empty ? "" : "; ") + more + (closed ? "\"" : "") + line.substr(last);
}

// All rows so far. `remark` goes into the note of every row, also of those before it was made: GPUs that
// were not idle, say.
class Table {
  public:
    std::string remark;

    void add(Row row) { rows_.push_back(std::move(row)); }
    // Lines that a worker process has written.
    void add_lines(const std::string& text) { lines_ += text; }

    size_t size() const { return rows_.size(); }
    const std::vector<Row>& rows() const { return rows_; }

    std::string text() const {
        std::string out = header();
        for (const Row& row : rows_) out += noted(line(row), remark);
        for (size_t at = 0, end; at < lines_.size(); at = end) {
            end = std::min(lines_.find('\n', at), lines_.size() - 1) + 1;
            out += noted(lines_.substr(at, end - at), remark);
        }
        return out;
    }

  private:
    std::vector<Row> rows_;
    std::string lines_;
};

}  // namespace probe
