package windrow;

import java.util.ArrayList;
import java.util.List;
import org.apache.spark.api.python.PythonUtils;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.catalog.HiveTableRelation;
import org.apache.spark.sql.catalyst.plans.logical.Join;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Union;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.sources.BaseRelation;
import scala.Function1;
import scala.runtime.AbstractPartialFunction;

/**
 * Tells our relations which function of a query asks for the files of their rows, such as
 * input_file_name(). Only Spark's own reader answers these.
 */
public final class FileNames extends Rule {
    /** From now on, applies to the queries of a session. */
    public void install(SparkSession session) {
        SEQ known = session.experimental().extraOptimizations();
        List rules = new ArrayList();
        for (int i = 0; i < known.size(); i++) {
            if (known.apply(i) instanceof FileNames) return;
            rules.add(known.apply(i));
        }
        rules.add(this);
        session.experimental().extraOptimizations_$eq((SEQ) PythonUtils.toSeq(rules));
    }

    public TreeNode apply(TreeNode plan) {
        return asking((LogicalPlan) plan);
    }

    private static LogicalPlan asking(LogicalPlan plan) {
        LogicalPlan changed = plan;
        String function = WindrowRelation.Functions.of(plan.expressions());
        if (function != null && holdsOurs(plan)) {
            // Spark's own check of this comes before our rule, and does not know our relations.
            if (sources(plan) > 1) {
                throw new IllegalArgumentException(
                    function + "() is asked for above a join of several tables, where Spark cannot "
                    + "tell whose file is meant: select it from one table, and join the result");
            }
            changed = (LogicalPlan) plan.transform(new Asking(function));
        }
        SEQ children = (SEQ) changed.children();
        List asked = new ArrayList();
        boolean isSame = true;
        for (int i = 0; i < children.size(); i++) {
            LogicalPlan child = asking((LogicalPlan) children.apply(i));
            isSame &= child == children.apply(i);
            asked.add(child);
        }
        return isSame ? changed
            : (LogicalPlan) changed.withNewChildren((SEQ) PythonUtils.toSeq(asked));
    }

    private static boolean isOurs(Object node) {
        return node instanceof LogicalRelation
            && ((LogicalRelation) node).relation() instanceof WindrowRelation;
    }

    private static boolean holdsOurs(LogicalPlan plan) {
        if (isOurs(plan)) return true;
        SEQ children = (SEQ) plan.children();
        for (int i = 0; i < children.size(); i++) {
            if (holdsOurs((LogicalPlan) children.apply(i))) return true;
        }
        return false;
    }

    /** Counts the tables whose files a function above a plan could mean, as Spark counts its own. */
    private static int sources(LogicalPlan plan) {
        if (plan instanceof HiveTableRelation) return 1;
        if (plan instanceof LogicalRelation) {
            BaseRelation relation = ((LogicalRelation) plan).relation();
            return relation instanceof WindrowRelation || relation instanceof HadoopFsRelation ? 1 : 0;
        }
        SEQ children = (SEQ) plan.children();
        // The other side only decides which rows of the first one stay: it may be a subquery.
        int last = isOneSided(plan) ? 1 : children.size();
        int count = 0;
        for (int i = 0; i < last; i++) {
            count += sources((LogicalPlan) children.apply(i));
        }
        return plan instanceof Union ? Math.min(1, count) : count;
    }

    private static boolean isOneSided(LogicalPlan plan) {
        if (!(plan instanceof Join)) return false;
        String type = ((Join) plan).joinType().toString();
        return type.equals("LeftSemi") || type.equals("LeftAnti") || type.startsWith("ExistenceJoin");
    }

    /** Replaces our relations with ones that are asked for the files of their rows. */
    private static final class Asking extends AbstractPartialFunction {
        private final String function;

        Asking(String function) {
            this.function = function;
        }

        public boolean isDefinedAt(Object node) {
            return isOurs(node)
                && asked((WindrowRelation) ((LogicalRelation) node).relation()) != null;
        }

        public Object applyOrElse(Object node, Function1 other) {
            if (!isDefinedAt(node)) return other.apply(node);
            LogicalRelation leaf = (LogicalRelation) node;
            Object[] arguments = new Object[leaf.productArity()];
            for (int i = 1; i < arguments.length; i++) arguments[i] = leaf.productElement(i);
            arguments[0] = asked((WindrowRelation) leaf.relation());
            return leaf.makeCopy(arguments);
        }

        /** Returns a relation that differs from the given one; null if that is asked already. */
        private WindrowRelation asked(WindrowRelation relation) {
            String all = WindrowRelation.Functions.first(relation.function(), function);
            return all.equals(relation.function()) ? null : relation.asked(all);
        }
    }
}
