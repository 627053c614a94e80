// What the command line asks for. No CUDA here, so that it is tested without a GPU.
#pragma once

#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

namespace probe {

// Thrown for a command line that cannot be followed; the program ends with 2.
struct UsageError : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Options {
    std::string out = "probe-out";   // Folder written.
    double seconds = 180;            // No question starts after this.
    bool quick = false;              // Fewer sizes, one repeat.
    bool tiny = false;               // Smallest run that touches every kernel, for sanitizers.
    bool list = false;               // Print the questions and end.
    bool help = false;
    int gpus = 16;                   // At most so many.
    int repeats = 3;                 // Runs of every figure.
    bool nccl = true;                // Time NCCL where it is.
    bool peers = true;               // Let GPUs address each other where they can.
    std::vector<std::string> only;   // Only questions whose name holds one of these.
};

inline const char* usage() {
    return "probe [--out DIR] [--quick] [--seconds N] [--gpus N] [--only NAME[,NAME]] [--no-nccl]\n"
           "      [--no-p2p] [--list] [--tiny]\n"
           "Measures what `simulate calibrate` needs and writes observations.csv, traces.csv and\n"
           "system.json into DIR (probe-out).\n"
           "  --quick      5 to 30 s: fewer sizes, one repeat\n"
           "  --seconds N  start no question after N seconds (180)\n"
           "  --gpus N     use the first N GPUs only\n"
           "  --only NAME  only the questions whose name holds NAME; --list prints the names\n"
           "  --no-nccl    leave NCCL out\n"
           "  --no-p2p     as if GPUs could not address each other: everything by host memory\n"
           "  --tiny       a few rounds of everything, for compute-sanitizer; its times mean nothing\n";
}

// The number that follows an option.
inline double number(const std::string& option, const std::string& text, double least, double most) {
    char* end = nullptr;
    const double value = std::strtod(text.c_str(), &end);
    if (text.empty() || *end != '\0' || !(value >= least && value <= most)) {
        throw UsageError(option + " takes a number from " + std::to_string(int(least)) + " to " +
                         std::to_string(int(most)) + ", not `" + text + "`");
    }
    return value;
}

inline std::vector<std::string> split(const std::string& text, char at) {
    std::vector<std::string> parts;
    std::string part;
    for (char c : text) {
        if (c == at) {
            parts.push_back(part);
            part.clear();
        } else {
            part += c;
        }
    }
    parts.push_back(part);
    return parts;
}

inline Options parse_options(const std::vector<std::string>& arguments) {
    Options options;
    for (size_t at = 0; at < arguments.size(); ++at) {
        const std::string& option = arguments[at];
        auto value = [&]() -> const std::string& {
            if (at + 1 >= arguments.size()) throw UsageError(option + " needs a value");
            return arguments[++at];
        };
        if (option == "--out") {
            options.out = value();
            if (options.out.empty()) throw UsageError("--out needs the name of a folder");
        } else if (option == "--quick") {
            options.quick = true;
            options.seconds = 30;
            options.repeats = 1;
        } else if (option == "--tiny") {
            options.tiny = options.quick = true;
            options.seconds = 600;
            options.repeats = 1;
        } else if (option == "--seconds") {
            options.seconds = number(option, value(), 1, 3600);
        } else if (option == "--gpus") {
            const double gpus = number(option, value(), 1, 16);
            options.gpus = int(gpus);
            if (options.gpus != gpus) throw UsageError("--gpus takes a whole number");
        } else if (option == "--only") {
            for (const std::string& name : split(value(), ',')) {
                if (!name.empty()) options.only.push_back(name);
            }
            if (options.only.empty()) throw UsageError("--only needs the name of a question");
        } else if (option == "--no-nccl") {
            options.nccl = false;
        } else if (option == "--no-p2p") {
            options.peers = false;
        } else if (option == "--list") {
            options.list = true;
        } else if (option == "--help" || option == "-h") {
            options.help = true;
        } else {
            throw UsageError("there is no option `" + option + "`; --help lists them");
        }
    }
    return options;
}

}  // namespace probe
