"""docs/models.md says what the results of tools/models/check_models.py are."""

import sys
import unittest

from source import ROOT, text

sys.path.insert(0, str(ROOT / "tools/models"))
import models_page


class ModelsPage(unittest.TestCase):
    def test_page_is_what_the_results_say(self):
        self.assertEqual(text("docs/models.md"), models_page.page(), "run tools/models/check_models.py page")

    def test_each_model_has_a_result(self):
        for name, columns in models_page.COLUMNS.items():
            rows = models_page.rows_of(name)
            self.assertGreater(len(rows), 30, name)
            for row in rows.values():
                self.assertEqual(len(row), len(columns), row)


if __name__ == "__main__":
    unittest.main()
