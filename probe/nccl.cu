// NCCL by collective, size, algorithm and protocol, peer to peer on and off. NCCL reads its variables
// once a process, so that each setting runs in workers of its own: one process a GPU, as serving
// engines run it; this file starts them and collects their lines.

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "context.h"
#include "nccl_worker.h"

extern char** environ;

namespace probe {
namespace {

std::string own_path() {
    char path[4096];
    const ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    if (length <= 0) throw std::runtime_error("cannot find this program's own file");
    return std::string(path, size_t(length));
}

// Starts this program again as a worker with a setting's variables.
pid_t start(const std::vector<std::string>& arguments, const NcclSetting& setting) {
    std::vector<std::string> environment;
    for (char** one = environ; *one; ++one) {
        // What the user has set for himself must not change what the rows say.
        if (std::string(*one).rfind("NCCL_", 0) != 0) environment.push_back(*one);
    }
    for (const std::string& one : split(nccl_variables(setting), ' ')) environment.push_back(one);
    std::vector<char*> argv, envp;
    const std::string path = own_path();
    argv.push_back(const_cast<char*>(path.c_str()));
    for (const std::string& one : arguments) argv.push_back(const_cast<char*>(one.c_str()));
    for (const std::string& one : environment) envp.push_back(const_cast<char*>(one.c_str()));
    argv.push_back(nullptr);
    envp.push_back(nullptr);
    pid_t child = 0;
    const int code = posix_spawn(&child, path.c_str(), nullptr, nullptr, argv.data(), envp.data());
    if (code != 0) throw std::runtime_error("cannot start a worker process");
    return child;
}

// Waits for all; ends those that are left when one fails, the time is up or the user stops.
bool wait_all(const Context& context, std::vector<pid_t> children, double seconds_most) {
    const double begun = context.seconds();
    bool good = true;
    size_t left = children.size();
    while (left > 0) {
        for (pid_t& child : children) {
            int status = 0;
            if (child == 0 || waitpid(child, &status, WNOHANG) == 0) continue;
            good = good && WIFEXITED(status) && WEXITSTATUS(status) == 0;
            child = 0;
            --left;
        }
        const bool late = context.seconds() - begun > seconds_most;
        if (left > 0 && (!good || late || interrupted)) {
            for (pid_t child : children) {
                if (child != 0) kill(child, SIGKILL);
            }
            for (pid_t child : children) {
                if (child != 0) waitpid(child, nullptr, 0);
            }
            return false;
        }
        if (left > 0) usleep(2000);
    }
    return good;
}

std::string read_and_remove(const std::string& path) {
    std::ifstream file(path);
    std::stringstream text;
    text << file.rdbuf();
    file.close();
    unlink(path.c_str());
    return text.str();
}

bool wanted(const Context& context, const NcclSetting& setting) {
    const std::string name = setting.name;
    if (!context.options.peers && setting.peer_to_peer) return false;
    if (!context.machine.all_peers() && setting.peer_to_peer && name != "free") return false;
    if (context.options.tiny) return name == "free" || name == "engines" || name == "sends_one";
    if (context.options.quick) return name == "free" || name == "P2P_off" || name == "engines";
    return true;
}

// A folder for what workers write, and what became of them.
class Workers {
  public:
    explicit Workers(Context& context) : context_(context) {
        if (!nccl_present()) throw Absent("there is no libnccl.so.2 on the library path");
        if (!mkdtemp(folder_)) throw std::runtime_error("cannot make a temporary folder");
    }
    Workers(const Workers&) = delete;
    ~Workers() { rmdir(folder_); }

    // Runs `processes` workers of one setting; what each wrote, rank after rank.
    std::string run(const std::string& mode, const NcclSetting& setting, int processes, int ranks) {
        context_.check();
        const std::string base = std::string(folder_) + "/" + setting.name;
        const Options& options = context_.options;
        const std::string depth = options.tiny ? "tiny" : options.quick ? "quick" : "full";
        std::vector<pid_t> children;
        for (int rank = 0; rank < processes; ++rank) {
            children.push_back(start({"--nccl-worker", mode, setting.name, std::to_string(rank),
                                      std::to_string(ranks), base, depth}, setting));
        }
        const bool good = wait_all(context_, children, 60);
        std::string text;
        for (int rank = 0; rank < processes; ++rank) {
            text += read_and_remove(base + "." + std::to_string(rank) + ".csv");
        }
        unlink((base + ".id").c_str());
        if (!good) failed_ += (failed_.empty() ? "" : ", ") + std::string(setting.name) + (mode == "trace" ? " trace" : "");
        return text;
    }
    // Ends the question as the workers ended.
    void finish() const {
        if (interrupted) throw Interrupted();
        if (!failed_.empty()) throw NotHere("NCCL failed or took too long with: " + failed_);
    }

  private:
    Context& context_;
    char folder_[32] = "/tmp/probe-XXXXXX";
    std::string failed_;
};

// Does something with every setting that is wanted, on 2, 4, .. GPUs.
template <size_t count, typename Use>
void each(const Context& context, const NcclSetting (&settings)[count], const Use& use) {
    for (int used = 2; used <= context.machine.count(); used *= 2) {
        for (const NcclSetting& setting : settings) {
            if (wanted(context, setting)) use(setting, used);
        }
    }
}

}  // namespace

void ask_nccl(Context& context) {
    Workers workers(context);
    each(context, nccl_settings, [&](const NcclSetting& setting, int used) {
        context.table.add_lines(workers.run("times", setting, used, used));
        const std::string name = setting.name;
        const bool traced = name == "free" || name == "P2P_off";
        if (!traced || used * 2 <= context.machine.count()) return;
        context.traces += workers.run("trace", setting, 1, used);
    });
    workers.finish();
}

// By copy engines, and sends by protocol and channels.
void ask_nccl_hops(Context& context) {
    Workers workers(context);
    each(context, nccl_hops, [&](const NcclSetting& setting, int used) {
        context.table.add_lines(workers.run("times", setting, used, used));
    });
    workers.finish();
}

// NCCL's calls beside copies: `beside.cu`.
void nccl_beside_copies(Context& context) {
    Workers workers(context);
    const int used = context.machine.count();
    for (const char* name : nccl_beside) {
        const NcclSetting setting = find_setting(name);
        if (wanted(context, setting)) context.table.add_lines(workers.run("beside", setting, used, used));
    }
    workers.finish();
}

}  // namespace probe
