// What a machine's own files tell of its wiring: the matrix of `nvidia-smi topo -m` and the
// configuration space of a PCI function. No CUDA here.
#pragma once

#include <cstdint>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace probe {

// Words of a line, parted by blanks or tabs, colours of a terminal left out.
inline std::vector<std::string> words(const std::string& line) {
    std::string plain;
    for (size_t at = 0; at < line.size(); ++at) {
        if (line[at] == '\x1b') {
            while (at < line.size() && line[at] != 'm') ++at;
        } else {
            plain += line[at];
        }
    }
    std::istringstream stream(plain);
    std::vector<std::string> out;
    for (std::string word; stream >> word;) out.push_back(word);
    return out;
}

// nvidia-smi's word for each pair of GPUs: `NV18`, `PIX`, `NODE`, `SYS`. Empty where the text is no
// such matrix.
inline std::vector<std::vector<std::string>> topo_matrix(const std::string& text, int gpus) {
    std::vector<std::vector<std::string>> matrix;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const std::vector<std::string> row = words(line);
        const std::string name = "GPU" + std::to_string(matrix.size());
        // The head names GPU0 first too, but its second word is another GPU or a title.
        if (row.size() <= size_t(gpus) || row[0] != name) continue;
        if (matrix.empty() && row[1] != "X") continue;
        matrix.emplace_back(row.begin() + 1, row.begin() + 1 + gpus);
        if (int(matrix.size()) == gpus) return matrix;
    }
    return {};
}

// The first ordered pair of each word, in the order in which they are met; the pairs of a machine
// whose matrix is not known are all of one class.
inline std::vector<std::pair<int, int>> pair_classes(
    const std::vector<std::vector<std::string>>& matrix, int gpus) {
    std::map<std::string, bool> seen;
    std::vector<std::pair<int, int>> pairs;
    for (int a = 0; a < gpus; ++a) {
        for (int b = a + 1; b < gpus; ++b) {
            const std::string word = matrix.empty() ? "" : matrix[size_t(a)][size_t(b)];
            if (!seen[word]) pairs.emplace_back(a, b);
            seen[word] = true;
        }
    }
    return pairs;
}

// What the PCI Express capability of a function says; zero where it cannot be read.
struct Express {
    int max_payload = 0;       // Bytes, as set.
    int max_read_request = 0;  // Bytes, as set.
    int generation = 0;        // Of the link, at the moment of reading.
    int width = 0;             // Lanes.
    int acs = -1;              // Access control services on: 1, off: 0, no such capability: -1.
};

inline uint32_t at(const std::vector<uint8_t>& config, size_t place, int bytes) {
    uint32_t value = 0;
    for (int i = 0; i < bytes; ++i) {
        if (place + size_t(i) < config.size()) value |= uint32_t(config[place + size_t(i)]) << (8 * i);
    }
    return value;
}

inline Express express(const std::vector<uint8_t>& config) {
    Express out;
    // Capabilities are a list from 0x34; 0x10 is PCI Express. No list is longer than 48.
    size_t place = at(config, 0x34, 1) & 0xfc;
    for (int steps = 0; place >= 0x40 && steps < 48; ++steps) {
        if (at(config, place, 1) == 0x10) {
            const uint32_t control = at(config, place + 8, 2);
            const uint32_t link = at(config, place + 0x12, 2);
            out.max_payload = 128 << (control >> 5 & 7);
            out.max_read_request = 128 << (control >> 12 & 7);
            out.generation = int(link & 0xf);
            out.width = int(link >> 4 & 0x3f);
            break;
        }
        place = at(config, place + 1, 1) & 0xfc;
    }
    // Extended ones from 0x100; 0x000d is access control services, redirects in bits 2 to 4.
    place = config.size() > 0x104 ? 0x100 : 0;
    for (int steps = 0; place >= 0x100 && steps < 480; ++steps) {
        const uint32_t head = at(config, place, 4);
        if ((head & 0xffff) == 0x000d) {
            out.acs = (at(config, place + 6, 2) & 0x1c) != 0 ? 1 : 0;
            break;
        }
        place = head >> 20;
    }
    return out;
}

// One flow of a pattern.
// From one memory to another: of a GPU, or the host's (-1).
struct Flow {
    int from, to;
    // Whose copy engine moves it: the sender's, or the receiver's where the host sends.
    int engine() const { return from < 0 ? to : from; }
};

// A memory as a row names it.
inline std::string memory_name(int gpu) { return gpu < 0 ? "host" : std::to_string(gpu); }

inline std::string flow_text(const std::vector<Flow>& flows) {
    std::string out;
    for (const Flow& flow : flows) {
        if (!out.empty()) out += '+';
        out += memory_name(flow.from) + ">" + memory_name(flow.to);
    }
    return out;
}

// Every GPU reads from the one `distance` further on.
inline std::vector<Flow> staggered(int gpus, int distance) {
    std::vector<Flow> flows;
    for (int to = 0; to < gpus; ++to) flows.push_back({(to + distance) % gpus, to});
    return flows;
}

}  // namespace probe
