// Tests of what needs no GPU: g++ -std=c++17 -o tests probe/tests.cpp && ./tests
// `cargo test probe` runs them too.

#include <cstdio>
#include <cstdlib>

#include "json.h"
#include "observations.h"
#include "options.h"
#include "statistics.h"
#include "topology.h"

using namespace probe;

static void expect(bool good, const char* what, int line) {
    if (good) return;
    std::printf("line %d: %s\n", line, what);
    std::exit(1);
}
#define EXPECT(condition) expect(condition, #condition, __LINE__)

static std::string refusal(const std::vector<std::string>& arguments) {
    try {
        parse_options(arguments);
    } catch (const UsageError& error) {
        return error.what();
    }
    return "";
}

static void options() {
    const Options all = parse_options({"--out", "x", "--seconds", "90", "--only", "flags,load", "--gpus", "2"});
    EXPECT(all.out == "x" && all.seconds == 90 && all.gpus == 2 && all.repeats == 3);
    EXPECT(all.only.size() == 2 && all.only[1] == "load");
    const Options quick = parse_options({"--quick", "--no-nccl", "--no-p2p"});
    EXPECT(quick.quick && quick.seconds == 30 && quick.repeats == 1 && !quick.nccl && !quick.peers);
    EXPECT(refusal({"--bogus"}).find("--bogus") != std::string::npos);
    EXPECT(refusal({"--seconds"}).find("needs a value") != std::string::npos);
    EXPECT(refusal({"--seconds", "2x"}).find("`2x`") != std::string::npos);
    EXPECT(refusal({"--gpus", "17"}).find("1 to 16") != std::string::npos);
    EXPECT(refusal({"--gpus", "2.7"}).find("whole number") != std::string::npos);
    EXPECT(refusal({"--only", ""}).find("name of a question") != std::string::npos);
    EXPECT(refusal({"--seconds", "nan"}).find("`nan`") != std::string::npos);
    EXPECT(refusal({"--only", "flags"}).empty());
}

static void statistics() {
    const std::vector<double> values = {4, 1, 3, 2, 5};
    EXPECT(percentile(values, .5) == 3 && percentile(values, .05) == 1 && percentile(values, 1) == 5);
    EXPECT(percentile(values, 0) == 1 && percentile({}, .5) == 0);
    EXPECT(median(values) == 3 && median({1, 2, 3, 10}) == 2.5 && median({}) == 0);
    EXPECT(mean(values) == 3);
    // A clock 1000 ns ahead, trips of 600 ns; one in ten is late on its way back.
    std::vector<Round> rounds;
    for (int at = 0; at < 100; ++at) {
        const double sent = at * 2000.0, late = at % 10 == 0 ? 500 : 0;
        rounds.push_back({sent, sent + 300 + 1000, sent + 600 + late});
    }
    EXPECT(clock_offset(rounds) == 1000);
    EXPECT(scatter(1, 2, 1000) == scatter(1, 2, 1000) && scatter(1, 2, 1000) != scatter(2, 1, 1000));
    double sum = 0;
    for (uint32_t at = 0; at < 1000; ++at) {
        EXPECT(scatter(3, at, 1000) < 1000);
        sum += scatter(3, at, 1000);
    }
    EXPECT(sum > 450e3 && sum < 550e3);
    EXPECT(scatter(1, 1, 0) == 0);
}

static void table() {
    Row row;
    row.experiment = "flag";
    row.condition = "memory=host; \"odd\", text";
    row.metric = "latency";
    row.value = 1234.5678;
    row.unit = "ns";
    EXPECT(line(row) ==
           "flag,probe,,,,1,1,,0,,,\"memory=host; \"\"odd\"\", text\",0,latency,1234.57,ns,measured,,probe\n");
    // What is noticed late is said of all rows, those of workers too.
    Table table;
    table.add(row);
    row.note = "a note";
    table.add_lines(line(row));
    row.note = "one, with a comma";
    table.add_lines(line(row) + line(row));
    EXPECT(table.text().find("idle") == std::string::npos);
    table.remark = "GPUs were not idle";
    const std::string text = table.text();
    EXPECT(table.size() == 1 && text.rfind(header(), 0) == 0);
    EXPECT(text.find("measured,GPUs were not idle,probe\n") != std::string::npos);
    EXPECT(text.find("measured,a note; GPUs were not idle,probe\n") != std::string::npos);
    const std::string late = "measured,\"one, with a comma; GPUs were not idle\",probe\n";
    const size_t first = text.find(late);
    EXPECT(first != std::string::npos && text.find(late, first + 1) != std::string::npos);
    EXPECT(text.back() == '\n');
    row.note = "";
    const auto commas = [](const std::string& one) {
        int count = 0;
        bool inside = false;
        for (char c : one) {
            if (c == '"') inside = !inside;
            count += c == ',' && !inside;
        }
        return count;
    };
    EXPECT(commas(header()) == 18 && commas(line(row)) == 18);
    Json json('{');
    json.text("a", "tab\there \"q\"");
    json.number("b", 0.25);
    EXPECT(json.close() == "{\n \"a\": \"tab\\there \\\"q\\\"\",\n \"b\": 0.25\n}");
    EXPECT(Json('[').close() == "[]");
}

static void wiring() {
    const std::string text =
        "\t\x1b[4mGPU0\tGPU1\tGPU2\tCPU Affinity\x1b[0m\nGPU0\t X \tPIX\tSYS\t0-31\n"
        "GPU1\tPIX\t X \tSYS\t0-31\nGPU2\tSYS\tSYS\t X \t0-31\n\nLegend:\n";
    const auto matrix = topo_matrix(text, 3);
    EXPECT(matrix.size() == 3 && matrix[0][1] == "PIX" && matrix[2][0] == "SYS" && matrix[1][1] == "X");
    EXPECT(topo_matrix("nothing of the kind\n", 3).empty());
    EXPECT(topo_matrix(text, 4).empty());
    const auto classes = pair_classes(matrix, 3);
    EXPECT(classes.size() == 2 && classes[0] == std::make_pair(0, 1) && classes[1] == std::make_pair(0, 2));
    EXPECT(pair_classes({}, 3).size() == 1);
    EXPECT(flow_text(staggered(4, 3)) == "3>0+0>1+1>2+2>3");
    // A capability list: power management at 0x40, PCI Express at 0x78, Gen5 x16, 256 and 4096 bytes;
    // access control services at 0x148 behind another extended one.
    std::vector<uint8_t> config(4096, 0);
    config[0x34] = 0x40;
    config[0x40] = 0x01;
    config[0x41] = 0x78;
    config[0x78] = 0x10;
    config[0x80] = 1 << 5;
    config[0x81] = 5 << 4;
    config[0x8a] = 0x05;
    config[0x8b] = 0x01;
    config[0x100] = 0x01;
    config[0x102] = 0x81;
    config[0x103] = 0x14;
    config[0x148] = 0x0d;
    config[0x14e] = 0x1d;
    const Express link = express(config);
    EXPECT(link.generation == 5 && link.width == 16 && link.max_payload == 256);
    EXPECT(link.max_read_request == 4096 && link.acs == 1);
    EXPECT(express({}).generation == 0 && express({}).acs == -1);
    // A list that leads back to itself ends.
    config[0x78] = 0x05;
    config[0x79] = 0x40;
    EXPECT(express(config).generation == 0);
}

int main() {
    options();
    statistics();
    table();
    wiring();
    std::puts("all good");
    return 0;
}
