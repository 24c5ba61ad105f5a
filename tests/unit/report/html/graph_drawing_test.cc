#include "report/html/graph_drawing.h"

#include <gtest/gtest.h>

#include <cmath>

namespace collage {
namespace {

GraphShape Diamond() { return {{{200, 50}, {200, 50}, {100, 30}, {200, 50}}, {{0, 1}, {0, 2}, {1, 3}, {2, 3}}}; }

TEST(GraphDrawingTest, EdgesGoDownFromBoxToBox) {
  const GraphShape shape = Diamond();
  const GraphDrawing drawing = DrawGraph(shape);
  ASSERT_EQ(drawing.centres.size(), 4u);
  ASSERT_EQ(drawing.edges.size(), 4u);
  for (size_t i = 0; i < shape.edges.size(); ++i) {
    const auto [from, to] = shape.edges[i];
    const auto& points = drawing.edges[i];
    ASSERT_EQ(points.size() % 3, 1u) << "control points of cubic curves";
    EXPECT_NEAR(points.front().y, drawing.centres[from].y + shape.boxes[from].height / 2, 2);
    EXPECT_NEAR(points.back().y, drawing.centres[to].y - shape.boxes[to].height / 2, 2);
    EXPECT_LE(std::abs(points.back().x - drawing.centres[to].x), shape.boxes[to].width / 2 + 1);
  }
}

TEST(GraphDrawingTest, BoxesAreApartAndWithinTheDrawing) {
  const GraphShape shape = Diamond();
  const GraphDrawing drawing = DrawGraph(shape);
  for (size_t i = 0; i < shape.boxes.size(); ++i) {
    EXPECT_GE(drawing.centres[i].x, shape.boxes[i].width / 2 - 1);
    EXPECT_LE(drawing.centres[i].x, drawing.width - shape.boxes[i].width / 2 + 1);
    EXPECT_GE(drawing.centres[i].y, shape.boxes[i].height / 2 - 1);
    EXPECT_LE(drawing.centres[i].y, drawing.height - shape.boxes[i].height / 2 + 1);
    for (size_t j = 0; j < i; ++j) {
      const double across = std::abs(drawing.centres[i].x - drawing.centres[j].x);
      const double down = std::abs(drawing.centres[i].y - drawing.centres[j].y);
      EXPECT_TRUE(across >= (shape.boxes[i].width + shape.boxes[j].width) / 2 ||
                  down >= (shape.boxes[i].height + shape.boxes[j].height) / 2)
          << i << " and " << j;
    }
  }
}

TEST(GraphDrawingTest, RanksAreAboveAndBelow) {
  GraphShape shape{{{100, 30}, {8, 8, GraphShape::Rank::kLast}, {8, 8, GraphShape::Rank::kFirst}, {100, 30}},
                   {{2, 0}, {0, 3}, {0, 1}}};
  const GraphDrawing drawing = DrawGraph(shape);
  EXPECT_LT(drawing.centres[2].y, drawing.centres[0].y);
  EXPECT_GE(drawing.centres[1].y, drawing.centres[3].y) << "an exit is not above what is computed later";
}

TEST(GraphDrawingTest, LongChainsWithSkipsTakeSecondsAtMost) {
  GraphShape shape;
  for (int i = 0; i < 2000; ++i) {
    shape.boxes.push_back({200, 50});
    if (i > 0) shape.edges.emplace_back(i - 1, i);
    if (i > 10 && i % 7 == 0) shape.edges.emplace_back(i - 9, i);
  }
  const GraphDrawing drawing = DrawGraph(shape);
  for (size_t i = 1; i < drawing.centres.size(); ++i) EXPECT_GT(drawing.centres[i].y, drawing.centres[i - 1].y);
}

TEST(GraphDrawingTest, NothingHasNoSize) {
  EXPECT_TRUE(DrawGraph({}).centres.empty());
  EXPECT_EQ(DrawGraph({{{10, 10}}, {}}).centres.size(), 1u);
}

}  // namespace
}  // namespace collage
