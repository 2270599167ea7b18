// Objects that threads use for a call and then give back, so that their memory is kept. No lock, so that a
// fork cannot find one held.
#pragma once

#include <array>
#include <atomic>
#include <memory>

namespace boundary_forest {

template <class T>
class ObjectPool {
 public:
  ObjectPool() = default;
  ObjectPool(const ObjectPool&) = delete;
  ObjectPool& operator=(const ObjectPool&) = delete;
  ~ObjectPool() {
    for (auto& place : places_) delete place.load();
  }

  std::unique_ptr<T> take() {
    for (auto& place : places_)
      if (T* object = place.exchange(nullptr)) return std::unique_ptr<T>(object);
    return std::make_unique<T>();
  }
  void give_back(std::unique_ptr<T> object) {
    for (auto& place : places_) {
      T* empty = nullptr;
      if (place.compare_exchange_strong(empty, object.get())) {
        object.release();
        return;
      }
    }
  }

 private:
  std::array<std::atomic<T*>, 16> places_{};
};

}  // namespace boundary_forest
