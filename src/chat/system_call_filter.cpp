#include "chat/system_call_filter.h"

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

namespace coterie {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kMachine = 0;
#endif

/// Numbers from here on are the 32-bit-pointer variants of x86-64's calls.
constexpr std::uint32_t kForeignNumbers = 0x40000000;

constexpr std::uint32_t kDenied[] = {
    // network
    SYS_socket,
    SYS_socketpair,
    SYS_connect,
    SYS_bind,
    SYS_listen,
    SYS_accept,
    SYS_accept4,
    SYS_io_uring_setup,
    // processes
    SYS_clone,
    SYS_clone3,
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_kill,
    SYS_pidfd_send_signal,
    SYS_pidfd_getfd,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    // files
    SYS_openat2,
    SYS_unlinkat,
    SYS_renameat2,
    SYS_mkdirat,
    SYS_linkat,
    SYS_symlinkat,
    SYS_mknodat,
    SYS_fchmodat,
    SYS_fchownat,
    SYS_truncate,
    SYS_mount,
    SYS_memfd_create,
#if defined(__x86_64__)
    SYS_fork,
    SYS_vfork,
    SYS_creat,
    SYS_unlink,
    SYS_rename,
    SYS_renameat,
    SYS_mkdir,
    SYS_rmdir,
    SYS_link,
    SYS_symlink,
    SYS_mknod,
    SYS_chmod,
    SYS_chown,
#endif
};

constexpr sock_filter statement(std::uint16_t code, std::uint32_t value) { return {code, 0, 0, value}; }

constexpr sock_filter jump(std::uint16_t test, std::uint32_t value, std::uint8_t if_true,
                           std::uint8_t if_false) {
    return {static_cast<std::uint16_t>(BPF_JMP | test | BPF_K), if_true, if_false, value};
}

constexpr sock_filter load(std::size_t offset) {
    return statement(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
}

constexpr std::uint32_t kDeny = SECCOMP_RET_ERRNO | EPERM;

/// Adds "if the call is `number` and its argument at `flags_offset` asks to write, deny"; the number is
/// loaded again.
constexpr std::size_t add_open_rule(sock_filter* at, std::uint32_t number, std::size_t flags_offset) {
    at[0] = jump(BPF_JEQ, number, 0, 4);
    at[1] = load(flags_offset);
    at[2] = jump(BPF_JSET, O_WRONLY | O_RDWR | O_CREAT | O_TRUNC, 0, 1);
    at[3] = statement(BPF_RET, kDeny);
    at[4] = statement(BPF_RET, SECCOMP_RET_ALLOW);
    return 5;
}

struct Filter {
    std::array<sock_filter, 2 * std::size(kDenied) + 32> rows{};
    std::size_t count = 0;
};

constexpr Filter make_filter() {
    Filter filter;
    const auto add = [&](sock_filter row) { filter.rows[filter.count++] = row; };
    // The flags of open calls: the low half of a 64-bit argument, first on these little-endian machines.
    constexpr std::size_t arguments = offsetof(seccomp_data, args);
    add(load(offsetof(seccomp_data, arch)));
    add(jump(BPF_JEQ, kMachine, 1, 0));
    add(statement(BPF_RET, SECCOMP_RET_KILL_PROCESS));
    add(load(offsetof(seccomp_data, nr)));
    add(jump(BPF_JGE, kForeignNumbers, 0, 1));
    add(statement(BPF_RET, kDeny));
    for (const std::uint32_t number : kDenied) {
        add(jump(BPF_JEQ, number, 0, 1));
        add(statement(BPF_RET, kDeny));
    }
    filter.count +=
        add_open_rule(&filter.rows[filter.count], SYS_openat, arguments + 2 * sizeof(std::uint64_t));
#if defined(__x86_64__)
    filter.count += add_open_rule(&filter.rows[filter.count], SYS_open, arguments + sizeof(std::uint64_t));
#endif
    add(statement(BPF_RET, SECCOMP_RET_ALLOW));
    return filter;
}

constexpr Filter kFilter = make_filter();

}  // namespace

void install_system_call_filter() {
    if (kMachine == 0) return;
    const sock_fprog program{static_cast<unsigned short>(kFilter.count),
                             const_cast<sock_filter*>(kFilter.rows.data())};
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0);
}

}  // namespace coterie
