// SPDX-License-Identifier: BSD-2-Clause
// Sizes of the C++ library's types on top of mutexes, compiled with libc's mutexes.
#include <cstdio>
#include <fstream>
#include <locale>

#define PRINT(type) std::printf("%s %lu\n", #type, static_cast<unsigned long>(sizeof(type)))

#if __cplusplus >= 201103L
#include <condition_variable>
#include <future>
#include <memory>
#include <mutex>
#include <thread>
#define PRINT_NEW(type) PRINT(type)
#else
#define PRINT_NEW(type) static_cast<void>(0)
#endif

int main()
{
    PRINT(std::ifstream);
    PRINT(std::ofstream);
    PRINT(std::filebuf);
    PRINT(std::locale);
    PRINT_NEW(std::mutex);
    PRINT_NEW(std::recursive_mutex);
    PRINT_NEW(std::timed_mutex);
    PRINT_NEW(std::condition_variable);
    PRINT_NEW(std::once_flag);
    PRINT_NEW(std::shared_ptr<int>);
    PRINT_NEW(std::promise<int>);
    return 0;
}
