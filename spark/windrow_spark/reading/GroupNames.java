package windrow;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PythonUDF;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.LogicalRDD;

/**
 * Refuses functions that ask for the files of rows, such as input_file_name(), above rows that our
 * Python tasks read: Spark would answer '' or -1.
 */
public final class GroupNames extends Rule {
    private String reader;

    /**
     * From now on, applies to the queries of a session.
     *
     * @param name the name that our readers have in Spark's plans
     */
    public void install(SparkSession session, String name) {
        reader = name;
        SEQ known = session.experimental().extraOptimizations();
        List rules = new ArrayList();
        for (int i = 0; i < known.size(); i++) {
            if (known.apply(i) instanceof GroupNames) return;
            rules.add(known.apply(i));
        }
        rules.add(this);
        session.experimental().extraOptimizations_$eq((SEQ) PythonUtils.toSeq(rules));
    }

    @Override
    public TreeNode apply(TreeNode plan) {
        check((LogicalPlan) plan);
        return plan;
    }

    private void check(LogicalPlan plan) {
        String function = asking(plan.expressions());
        if (function != null && holdsOurs(plan)) {
            throw new IllegalArgumentException(
                function + "() is asked for above rows of client.read_plan or client.read_buckets, "
                + "whose tasks read groups of files and do not say which: read the table with "
                + "client.read, or leave the function out");
        }
        SEQ children = (SEQ) plan.children();
        for (int i = 0; i < children.size(); i++) check((LogicalPlan) children.apply(i));
    }

    private static String asking(SEQ expressions) {
        for (int i = 0; i < expressions.size(); i++) {
            Expression expression = (Expression) expressions.apply(i);
            String name = expression.prettyName();
            if (name.startsWith("input_file_")) return name;
            String below = asking((SEQ) expression.children());
            if (below != null) return below;
        }
        return null;
    }

    private boolean holdsOurs(LogicalPlan plan) {
        if (plan instanceof LogicalRDD && reader.equals(((LogicalRDD) plan).rdd().name())) {
            return true;
        }
        SEQ expressions = plan.expressions();
        for (int i = 0; i < expressions.size(); i++) {
            Object expression = expressions.apply(i);
            if (expression instanceof PythonUDF && reader.equals(((PythonUDF) expression).name())) {
                return true;
            }
        }
        SEQ children = (SEQ) plan.children();
        // The other side only decides which rows of the first one stay: it may be a subquery.
        int last = isOneSided(plan) ? 1 : children.size();
        for (int i = 0; i < last; i++) {
            if (holdsOurs((LogicalPlan) children.apply(i))) return true;
        }
        return false;
    }

    private static boolean isOneSided(LogicalPlan plan) {
        if (!(plan instanceof Join)) return false;
        String type = ((Join) plan).joinType().toString();
        return type.equals("LeftSemi") || type.equals("LeftAnti") || type.startsWith("ExistenceJoin");
    }
}
